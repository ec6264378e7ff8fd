"""The command `bytepair`, outside of the package, whose import takes long enough for Ctrl-C."""

INTERRUPTED = 130  # 128 + SIGINT, as shells say it


def main() -> int:
    """Run the command; see `bytepair_client._cli.main`."""
    try:
        from bytepair_client._cli import main
    except KeyboardInterrupt:
        return INTERRUPTED
    return main()
