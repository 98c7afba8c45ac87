/**
 * Directories of the data of environments on this machine. If root runs the service, each environment's
 * process runs as its own user. The owner of the environment's directory determines this user.
 */
import { execFile } from "node:child_process"
import { hash } from "node:crypto"
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync
} from "node:fs"
import { readdir, rm, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { systemDirectory } from "#server/platform/postgres/binaries"
import { findPrograms, isPublic, ownUsers } from "#server/platform/workerd/programs"

/** Directories and user of an environment. */
export interface EnvironmentDirectories {
  readonly data: string
  readonly sockets: string
  readonly uid: number | undefined
}

/** Directories of the simulators below the data of an environment. */
const storages = ["d1", "kv", "r2", "do", "cache"] as const

/** Number of users for deployments that start for validation. */
const temporaryUsers = 100

/** Bytes of a trial write. A first database with its log takes less. */
const trialBytes = 256 * 1024

const makePublic = (directory: string): string => {
  mkdirSync(directory, { recursive: true })
  // Processes pass through it, and cannot list it.
  chmodSync(directory, 0o711)
  return directory
}

/**
 * Closes what the service has in the data directory to other users, who only pass through it. Installations
 * of earlier releases have folders and files there that everybody can read.
 */
const closeToOthers = (dataDir: string): void => {
  const own = process.getuid?.()
  const close = (path: string, kept: number): void => {
    const { mode, uid } = lstatSync(path)
    const closed = mode & kept
    if (uid === own && (mode & 0o777) !== closed) chmodSync(path, closed)
  }
  for (const entry of readdirSync(dataDir, { withFileTypes: true })) {
    const isLink = !entry.isFile() && !entry.isDirectory()
    if (!isLink && entry.name !== functionsFolder) close(join(dataDir, entry.name), 0o700)
  }
  close(dataDir, 0o711)
}

const functionsFolder = "functions"

/** Folder beside those of environments, for files that live shortly. */
export const snapshotsFolder = "snapshots"

const insideOf = (full: string): string => join(full, functionsFolder)

const outsideOf = (full: string): string =>
  join(systemDirectory, `functions-${hash("sha256", full).slice(0, 12)}`)

/** Returns the root of the data of all environments: the data directory if other users can enter it. */
const dataRoot = (dataDir: string, hasOwnUsers: boolean): string => {
  const full = resolve(dataDir)
  mkdirSync(full, { recursive: true })
  if (!hasOwnUsers) return insideOf(full)
  if (!isPublic(full)) return outsideOf(full)
  closeToOthers(full)
  return insideOf(full)
}

/** Folders that may hold the data of environments. A missing folder holds none. */
export const functionFolders = (dataDir: string): ReadonlyArray<string> => {
  const full = resolve(dataDir)
  return [insideOf(full), outsideOf(full)]
}

/**
 * Creates the folder for restored data, and returns whether each environment has its own user there.
 */
export const makeRestoredFolder = async (dataDir: string) => {
  const hasOwnUsers = await findPrograms().then(
    (programs) => programs.hasOwnUsers,
    () => false
  )
  return { root: makePublic(dataRoot(dataDir, hasOwnUsers)), hasOwnUsers }
}

const giveTo = async (uid: number, directory: string): Promise<void> => {
  await promisify(execFile)("chown", ["-R", `${uid}:${uid}`, directory])
}

export class DataDirectories {
  readonly #data: string
  readonly #sockets: string
  readonly #hasOwnUsers: boolean
  readonly #users = new Set<number>()
  readonly #known = new Map<string, EnvironmentDirectories>()
  #made = 0

  /**
   * `sockets` is a directory that only this process uses. Its path must be short, since socket names
   * have a length limit.
   */
  constructor(dataDir: string, sockets: string, hasOwnUsers: boolean) {
    this.#data = makePublic(dataRoot(dataDir, hasOwnUsers))
    this.#sockets = makePublic(sockets)
    this.#hasOwnUsers = hasOwnUsers
    this.#readUsers()
  }

  /** Root of the data of all environments. */
  get root(): string {
    return this.#data
  }

  /** Directory names of the environments on this disk. */
  get names(): ReadonlyArray<string> {
    return readdirSync(this.#data)
  }

  #readUsers(): void {
    for (const name of this.names) {
      const uid = statSync(join(this.#data, name), { throwIfNoEntry: false })?.uid
      if (uid !== undefined) this.#users.add(uid)
    }
  }

  /** Creates the directories of an environment. */
  async of(environmentId: string): Promise<EnvironmentDirectories> {
    const known = this.#known.get(environmentId)
    const data = this.dataOf(environmentId)
    if (known !== undefined && existsSync(data)) return known
    const uid = await this.#ownerOf(data)
    for (const storage of storages) this.#make(join(data, storage), uid)
    const sockets = known?.sockets ?? join(this.#sockets, String((this.#made += 1)))
    this.#make(sockets, uid)
    const directories = { data, sockets, uid }
    this.#known.set(environmentId, directories)
    return directories
  }

  /** Folder of the service on the disk of the data, which no environment can read. */
  temporaryFolder(): string {
    const folder = join(this.#data, snapshotsFolder)
    this.#make(folder, undefined)
    return folder
  }

  /** Writes and removes a trial file larger than a first database, to test the disk. */
  async tryToWrite(): Promise<void> {
    const file = join(this.temporaryFolder(), `trial-${process.pid}-${(this.#made += 1)}`)
    try {
      await writeFile(file, Buffer.alloc(trialBytes))
    } finally {
      await rm(file, { force: true })
    }
  }

  /** Creates directories for one start, with a user that no environment has. */
  temporary(): EnvironmentDirectories {
    const root = join(this.#sockets, String((this.#made += 1)))
    const uid = this.#hasOwnUsers ? ownUsers.last + 1 + (this.#made % temporaryUsers) : undefined
    for (const storage of storages) this.#make(join(root, "data", storage), uid)
    for (const directory of [root, join(root, "data")]) this.#make(directory, uid)
    return { data: join(root, "data"), sockets: root, uid }
  }

  removeTemporary({ sockets }: EnvironmentDirectories): void {
    rmSync(sockets, { recursive: true, force: true })
  }

  dataOf(environmentId: string): string {
    return join(this.#data, environmentId)
  }

  /** Directory of the service for the snapshots of an environment, on the disk of the data. */
  snapshotsOf(environmentId: string): string {
    return join(this.#data, snapshotsFolder, environmentId)
  }

  /**
   * Replaces the data of an environment by a directory. The process of the environment must have ended.
   */
  async replace(environmentId: string, directory: string): Promise<void> {
    const data = this.dataOf(environmentId)
    const owner = statSync(data, { throwIfNoEntry: false })?.uid
    for (const storage of storages) this.#make(join(directory, storage), undefined)
    if (this.#hasOwnUsers && owner !== undefined) await giveTo(owner, directory)
    const old = `${directory}.old`
    rmSync(old, { recursive: true, force: true })
    if (owner !== undefined) renameSync(data, old)
    renameSync(directory, data)
    rmSync(old, { recursive: true, force: true })
  }

  /** Empties the cache of an environment, which may go at any time. The process must have ended. */
  async emptyCache(environmentId: string): Promise<void> {
    const cache = join(this.dataOf(environmentId), "cache")
    const names = existsSync(cache) ? await readdir(cache) : []
    for (const name of names) await rm(join(cache, name), { recursive: true, force: true })
  }

  /** Removes the data of an environment. The process of the environment must have ended. */
  remove(environmentId: string): void {
    rmSync(this.dataOf(environmentId), { recursive: true, force: true })
  }

  #make(directory: string, uid: number | undefined): void {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    if (uid !== undefined) chownSync(directory, uid, uid)
  }

  async #ownerOf(data: string): Promise<number | undefined> {
    if (!this.#hasOwnUsers) {
      mkdirSync(data, { recursive: true, mode: 0o700 })
      return undefined
    }
    const isNew = !existsSync(data)
    const owner = isNew ? undefined : statSync(data).uid
    if (owner !== undefined && owner >= ownUsers.first && owner <= ownUsers.last) return owner
    // Another runner of this machine may have made directories, too.
    this.#readUsers()
    let uid: number = ownUsers.first
    while (this.#users.has(uid)) uid += 1
    if (uid > ownUsers.last)
      throw new Error("Failed to give an environment a user of its own: all are taken")
    this.#users.add(uid)
    this.#make(data, uid)
    await giveTo(uid, data)
    return uid
  }
}
