/**
 * Changes in a folder and its subfolders. On Linux it watches each folder by itself: Node's recursive
 * watcher there loses a file that an editor replaces by a rename.
 */
import { type FSWatcher, readdirSync, watch } from "node:fs"
import { join } from "node:path"

const isHidden = (name: string): boolean => /(?:^|[\\/])(?:node_modules|\.)/.test(name)

const foldersIn = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !isHidden(entry.name))
      .map((entry) => join(folder, entry.name))
  } catch {
    // It was removed in the meantime.
    return []
  }
}

/** Watches each folder of a tree; returns what stops it. */
const watchFolders = (root: string, onChange: () => void): (() => void) => {
  const watchers = new Map<string, FSWatcher>()
  const remove = (folder: string): void => {
    watchers.get(folder)?.close()
    watchers.delete(folder)
  }
  const add = (folder: string): void => {
    if (watchers.has(folder)) return
    const watcher = watch(folder, (_event, name) => {
      if (name === null || isHidden(name)) return
      for (const inner of foldersIn(folder)) add(inner)
      onChange()
    })
    watcher.on("error", () => remove(folder))
    watchers.set(folder, watcher)
    for (const inner of foldersIn(folder)) add(inner)
  }
  add(root)
  return () => {
    for (const folder of watchers.keys()) remove(folder)
  }
}

/** Calls `onChange` after each change; returns what stops it. Ignores `node_modules` and hidden files. */
export const watchFolder = (root: string, onChange: () => void): (() => void) => {
  if (process.platform === "linux") return watchFolders(root, onChange)
  const watcher = watch(root, { recursive: true }, (_event, name) => {
    if (name !== null && !isHidden(name)) onChange()
  })
  return () => watcher.close()
}
