# A scripted agent of the soak: three commits for its item, one of them wrong now and then, and `coppice done` until it
# ends the session. Started again, it continues with what is committed. Whatever it has made it writes into a ledger.
ledger=$1
item=$COPPICE_ITEM
pause() { sleep "0.$(($(od -An -N1 -tu1 /dev/urandom) % 9 + 1))"; }
# A git that was killed leaves its lock behind. In its own worktree, nobody else's git can hold it now.
unlock() { rm -f "$(git rev-parse --git-dir)/index.lock" "$(git rev-parse --git-dir)/HEAD.lock"; }
note() { echo "$1 $(git rev-parse HEAD)" >>"$ledger/$item"; }
commit() {
  for attempt in 1 2 3 4 5; do
    git add -A && git commit -qm "$1" && note "commit" && return
    unlock
  done
  return 1
}
step() {
  git cat-file -e "HEAD:work/$item-$1" 2>/dev/null && return
  mkdir -p work
  # What an earlier session wrote and couldn't commit is still there.
  [ -e "work/$item-$1" ] || echo "$COPPICE_AGENT $COPPICE_SPAWN $(od -An -N8 -tx8 /dev/urandom)" >"work/$item-$1"
  echo "blob $(git hash-object "work/$item-$1")" >>"$ledger/$item"
  pause
  commit "item $item, step $1"
}
# Sent back, or started again: what has landed meanwhile may conflict.
if [ -e "$ledger/started-$item" ]; then
  unlock
  git fetch -q origin && git merge -q -X ours -m "item $item, merged" origin/main && note merge
fi
echo "$COPPICE_SPAWN" >>"$ledger/started-$item"
step 1 && step 2 && step 3
# Every tenth item is wrong at first; sent back, it is corrected.
if [ $((item % 10)) -eq 0 ] && ! git log --format=%s | grep -q "item $item, corrected"; then
  if git log --format=%s | grep -q "item $item, wrong" && coppice item show "$item" --json | grep -q gate; then
    git rm -q red && commit "item $item, corrected"
  elif ! git cat-file -e HEAD:red 2>/dev/null; then
    echo wrong >red && commit "item $item, wrong"
  fi
fi
# Every seventh writes the same lines as others do, so that it conflicts.
if [ $((item % 7)) -eq 0 ] && ! git log --format=%s | grep -q "item $item, shared"; then
  echo "$item" >shared && commit "item $item, shared"
fi
until coppice done; do
  unlock
  # A merge that was killed is concluded, even if nothing is left to commit.
  if [ -e "$(git rev-parse --git-dir)/MERGE_HEAD" ] || git status --porcelain | grep -q .; then
    commit "item $item, left over"
  fi
  pause
done
