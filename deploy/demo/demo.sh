#!/bin/sh
# Count, encode and decode a text through the service that BYTEPAIR_TARGET names.
set -eu
text=${1:-/demo/gettysburg.txt}
ids=$(mktemp)
back=$(mktemp)
trap 'rm -f "$ids" "$back"' EXIT

echo "The service at $BYTEPAIR_TARGET serves:"
bytepair encodings | grep -v "^ "

echo
echo "Lincoln's Gettysburg Address, $(wc -c < "$text") bytes, in tokens:"
for encoding in gpt2 cl100k_base o200k_base; do
    printf '  %-12s %s\n' "$encoding" "$(bytepair count --encoding "$encoding" < "$text")"
done

echo
echo "The first ids in o200k_base:"
bytepair encode --encoding o200k_base < "$text" > "$ids"
cut -d ' ' -f 1-12 "$ids"

bytepair decode --encoding o200k_base < "$ids" > "$back"
cmp "$text" "$back"
echo
echo "Decoded, all ids give the same text again, byte for byte."
