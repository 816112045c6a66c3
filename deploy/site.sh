#!/bin/sh
# A site's two processes in one container; the container ends, to be restarted, when either does.
set -eu
folder=${TACIT_FOLDER:-/etc/tacit}
address=$(sed -n 's/^address = "\(.*\)"$/\1/p' "$folder/site.toml")
tacit federate node --address "$address" --folder "$folder" &
node=$!
tacit federate serve "$folder/holder.toml" --secret "$folder/secret" &
site=$!
trap 'kill "$node" "$site" 2>/dev/null || true' TERM INT
while kill -0 "$node" 2>/dev/null && kill -0 "$site" 2>/dev/null; do
    sleep 1
done
kill "$node" "$site" 2>/dev/null || true
wait
