#!/bin/sh
# Make sure that there is a Chromium for the tests that look at pages.
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "agglearn: installing chromium for the tests of pages"
    apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null && exit 0
fi
echo "agglearn: the tests of pages need Chromium; install it (sudo apt install chromium)" >&2
exit 1
