#!/bin/sh
# Make sure that there are a Chromium and axe-core (checks of accessibility) for the tests that look at pages.
ready() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }
axe=tests/web/node_modules/axe-core/axe.min.js
packages=""
ready || packages="chromium fonts-dejavu-core"
[ -f "$axe" ] || command -v npm >/dev/null || packages="$packages npm"
if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "agglearn: installing $packages for the tests of pages"
    apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi
if ! ready; then
    echo "agglearn: the tests of pages need Chromium; install it (sudo apt install chromium)" >&2
    exit 1
fi
[ -f "$axe" ] || npm ci --silent --no-audit --no-fund --prefix tests/web >&2
if [ ! -f "$axe" ]; then
    echo "agglearn: the tests of pages need axe-core; install npm (sudo apt install npm), then: npm ci --prefix tests/web" >&2
    exit 1
fi
