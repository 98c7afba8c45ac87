/**
 * Where the data of environments is on this machine. Where root runs the service, each environment's
 * directory belongs to a user of its own, as which its process runs: the owner says which.
 */
import { execFile } from "node:child_process"
import { hash } from "node:crypto"
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync
} from "node:fs"
import { mkdir, rm, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { systemDirectory } from "#server/platform/postgres/binaries"
import { findPrograms, isPublic, ownUsers } from "#server/platform/workerd/programs"

/** The directories and the user of an environment. */
export interface EnvironmentDirectories {
  readonly data: string
  readonly sockets: string
  readonly uid: number | undefined
}

/** Directories of the simulators below the data of an environment. */
const storages = ["d1", "kv", "r2", "do", "cache"] as const

/** Users of deployments that are started to be validated. */
const temporaryUsers = 100

/** A first database takes less, with its log. */
const trialBytes = 256 * 1024

const makePublic = (directory: string): string => {
  mkdirSync(directory, { recursive: true })
  // Processes pass through it, and cannot list it.
  chmodSync(directory, 0o711)
  return directory
}

const insideOf = (full: string): string => join(full, "functions")

const outsideOf = (full: string): string =>
  join(systemDirectory, `functions-${hash("sha256", full).slice(0, 12)}`)

/** The data of all environments: in the data directory, if other users can enter it. */
const dataRoot = (dataDir: string, hasOwnUsers: boolean): string => {
  const full = resolve(dataDir)
  mkdirSync(full, { recursive: true })
  return !hasOwnUsers || isPublic(full) ? insideOf(full) : outsideOf(full)
}

/** Where the data of environments may be; a folder that does not exist holds none. */
export const functionFolders = (dataDir: string): ReadonlyArray<string> => {
  const full = resolve(dataDir)
  return [insideOf(full), outsideOf(full)]
}

/** Makes the folder for restored data, and says whether each environment has a user of its own there. */
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

  /** `sockets` is a directory of this process alone; the names of sockets must be short. */
  constructor(dataDir: string, sockets: string, hasOwnUsers: boolean) {
    this.#data = makePublic(dataRoot(dataDir, hasOwnUsers))
    this.#sockets = makePublic(sockets)
    this.#hasOwnUsers = hasOwnUsers
    this.#readUsers()
  }

  /** Directories of environments on this disk, by their names. */
  get names(): ReadonlyArray<string> {
    return readdirSync(this.#data)
  }

  #readUsers(): void {
    for (const name of this.names) {
      const uid = statSync(join(this.#data, name), { throwIfNoEntry: false })?.uid
      if (uid !== undefined) this.#users.add(uid)
    }
  }

  /** Makes the directories of an environment. */
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

  /** Writes as much as a first database takes, and removes it. */
  async tryToWrite(): Promise<void> {
    const folder = join(this.#data, "snapshots")
    const file = join(folder, `trial-${process.pid}-${(this.#made += 1)}`)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    try {
      await writeFile(file, Buffer.alloc(trialBytes))
    } finally {
      await rm(file, { force: true })
    }
  }

  /** Directories for one start, with a user that no environment has. */
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

  /** A directory of the service's own, on the disk of the data. */
  snapshotsOf(environmentId: string): string {
    return join(this.#data, "snapshots", environmentId)
  }

  /** Puts a directory in the place of the data of an environment, whose process must have ended. */
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

  /** Removes the data of an environment, whose process must have ended. */
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
    if (uid > ownUsers.last) throw new Error("No user is left for another environment.")
    this.#users.add(uid)
    this.#make(data, uid)
    await giveTo(uid, data)
    return uid
  }
}
