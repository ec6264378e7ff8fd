"""Who calls and what each caller may do: API keys, certificates, special-token policy, quotas."""
