#!/bin/sh
# Runs a test file in node if node, chromium and playwright-core are there; else says what is missing: exit 77, skipped.
skip() {
  echo "skipped: $1"
  exit 77
}
[ -x "${NODE:-}" ] || skip "no node (Debian: nodejs)"
[ -x "${CHROMIUM:-}" ] || skip "no chromium (Debian: chromium)"
[ -e "$NODE_MODULES/playwright-core/package.json" ] || skip "playwright-core was not fetched from the npm registry when this was built"
exec "$NODE" --test "$1"
