#!/bin/sh
# Copies a Coppice home directory to a new directory, also while the server runs: docs/deploy.md
#   backup.sh <home> <new directory>
# With PostgreSQL, dump the database first (pg_dump).
set -eu
if [ $# -ne 2 ]; then
  echo 'usage: backup.sh <home> <new directory>' >&2
  exit 2
fi
home=$1
target=$2
if [ ! -d "$home" ]; then
  echo "backup.sh: $home isn't a directory" >&2
  exit 2
fi
mkdir -m 700 "$target"
case $(CDPATH='' cd -- "$target" && pwd -P)/ in
  "$(CDPATH='' cd -- "$home" && pwd -P)"/*)
    rmdir "$target"
    echo "backup.sh: $target is inside $home, so it would be copied into itself" >&2
    exit 2
    ;;
esac

# The database first: work that begins after this is in the copied files, and Coppice finds it there. The other way
# round, the database would know worktrees that the copy doesn't have.
if [ -f "$home/coppice.db" ]; then
  node=node
  # node:sqlite needs Node 24. `npm ci` has put one beside Coppice.
  bundled=$(dirname -- "$0")/../node_modules/.bin/node
  if [ -x "$bundled" ]; then node=$bundled; fi
  "$node" -e '
    const [from, to] = process.argv.slice(1)
    const database = new (require("node:sqlite").DatabaseSync)(from, { timeout: 10_000 })
    database.prepare("vacuum into ?").run(to)
  ' "$home/coppice.db" "$target/coppice.db"
  chmod 600 "$target/coppice.db"
fi

# A file that changes or vanishes while it is copied makes tar exit with 1, which is normal here; 2 is a failure.
{
  code=0
  tar -C "$home" -c --exclude='./coppice.db' --exclude='./coppice.db-*' --exclude=./server.json --exclude=./locks \
    --exclude=./tmp --exclude='./worktrees/.trash' . || code=$?
  echo "$code" >"$target/.tar"
} | tar -C "$target" -x
if [ "$(cat "$target/.tar")" -gt 1 ]; then
  echo "backup.sh: couldn't copy $home; $target is incomplete" >&2
  exit 1
fi
rm "$target/.tar"

# git may have written while the copy was made. A copy of a repository is good if every object that it needs is there.
for repository in "$target"/repos/*; do
  if [ ! -d "$repository" ]; then continue; fi
  if ! git --git-dir="$repository" fsck --connectivity-only --no-dangling --no-progress >&2; then
    echo "backup.sh: $repository changed while it was copied. Delete $target and try again, or stop the server first" >&2
    exit 1
  fi
done
echo "Copied $home to $target"
