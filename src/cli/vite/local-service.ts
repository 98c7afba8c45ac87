/**
 * The service beside Vite's dev server: one process for each data directory, shared by all dev servers of
 * this Node process. A service that already runs at the address with the same keys is used as it is.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { KeyDescription } from "#rpc/projects/projects"
import { plainLine, plainLines } from "../terminal-text.ts"
import { isFree } from "../service-port.ts"

const Keys = Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })
const DevKeys = Schema.fromJsonString(Schema.Struct({ development: Keys }))

/** A running service with the keys of its development environment. */
export interface LocalService {
  readonly url: string
  readonly publishableKey: string
  readonly secretKey: string
  /** Stops the process when nobody else uses it. */
  readonly release: () => Promise<void>
}

export interface LocalServiceOptions {
  /** Ports to try, in order. */
  readonly ports: ReadonlyArray<number>
  readonly dataDir: string
  /** Settings of the service, as environment variables. */
  readonly env: Readonly<Record<string, string>>
}

interface Shared {
  readonly port: number
  readonly child: ChildProcess
  output: string
  users: number
  /** Ends when all output has come, which is after the exit of the process. */
  readonly closed: Promise<void>
}

const outputMax = 16 * 1024
const pollMillis = 100
/** A first start makes a database, which takes seconds on a busy machine. */
const startMillis = 90_000
/** A response that takes longer comes from a service that is still starting, or from another program. */
const responseMillis = 5000
/** Time for the service to move its rooms away and end; then the plugin kills it. */
const stopMillis = 15_000

const urlOf = (port: number): string => `http://localhost:${port}`

const running = new Map<string, Shared>()

/** The program of the service. In the package it is that of `@player-backend/server`. */
const program = (): string => fileURLToPath(new URL("../../server/main.ts", import.meta.url))

const isReady = async (url: string): Promise<boolean> => {
  try {
    return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(responseMillis) })).ok
  } catch {
    return false
  }
}

const describeKey = async (url: string, key: string) => {
  const headers = { "x-svc-key": key }
  const signal = AbortSignal.timeout(responseMillis)
  const response = await fetch(`${url}/v1/key`, { headers, signal })
  if (!response.ok) return undefined
  return Schema.decodeUnknownPromise(KeyDescription)(await response.json())
}

/** The keys of the service, if it accepts them. */
const keysFor = async (url: string, dataDir: string) => {
  const file = join(dataDir, "dev-keys.json")
  const text = await readFile(file, "utf8").catch(() => undefined)
  if (text === undefined) return undefined
  const { development } = await Schema.decodeUnknownPromise(DevKeys)(text)
  for (const kind of ["secret", "publishable"] as const) {
    const opens = await describeKey(url, development[`${kind}Key`])
    if (opens === undefined) return undefined
    // Pages and pushes of `vite dev` never go to production, even if somebody has edited the file.
    if (opens.environment === "development" && opens.kind === kind) continue
    throw new Error(
      `The ${kind} key of development in ${file} is a ${opens.kind} key of ${opens.environment}. ` +
        "Restore the file as the service wrote it, or start with an empty data directory."
    )
  }
  return development
}

const start = ({ dataDir, env }: LocalServiceOptions, port: number): Shared => {
  const child = spawn(process.execPath, [program()], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env, PORT: String(port), SVC_DATA_DIR: dataDir }
  })
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
  const shared: Shared = { port, child, closed, output: "", users: 0 }
  const append = (chunk: Buffer): void => {
    shared.output = (shared.output + chunk.toString()).slice(-outputMax)
  }
  child.stdout.on("data", append)
  child.stderr.on("data", append)
  child.on("error", (error) => append(Buffer.from(error.message)))
  child.once("exit", () => running.delete(dataDir))
  process.once("exit", () => child.kill())
  running.set(dataDir, shared)
  return shared
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null

const releaseOf = (shared: Shared | undefined) => async (): Promise<void> => {
  if (shared === undefined) return
  shared.users -= 1
  if (shared.users > 0 || hasEnded(shared.child)) return
  const exited = new Promise((resolve) => shared.child.once("exit", resolve))
  shared.child.kill("SIGTERM")
  const killing = setTimeout(() => shared.child.kill("SIGKILL"), stopMillis)
  await exited
  clearTimeout(killing)
}

/** Waits until the service is ready; fails with its output when it has ended. */
const untilReady = async (url: string, shared: Shared): Promise<void> => {
  const timeout = AbortSignal.timeout(startMillis)
  while (!timeout.aborted && !hasEnded(shared.child)) {
    if (await isReady(url)) return
    await sleep(pollMillis)
  }
  if (hasEnded(shared.child)) await shared.closed
  const { exitCode, signalCode } = shared.child
  const end = signalCode ?? (exitCode === null ? undefined : `code ${exitCode}`)
  const reason = end === undefined ? `not ready after ${startMillis / 1000} s` : `ended with ${end}`
  throw new Error(
    `Failed to start the service at ${url}: ${reason}.\n${plainLines(shared.output, "")}`.trimEnd()
  )
}

/** What is at a port: nothing, the service of this data directory, or something else. */
const occupantOf = async (port: number, dataDir: string) => {
  const url = urlOf(port)
  if (!(await isReady(url))) return (await isFree(port)) ? "nothing" : "foreign"
  return (await keysFor(url, dataDir)) === undefined ? "foreign" : "own"
}

/** The data directory of a service of somebody else, as its start page says; empty if it says none. */
const foreignDirectory = async (url: string): Promise<string> => {
  const signal = AbortSignal.timeout(responseMillis)
  const page = await fetch(url, { signal, redirect: "manual" }).catch(() => undefined)
  const text = page?.ok === true ? await page.text() : ""
  const [, directory = ""] = /<code>([^<]{1,512})\/dev-keys\.json<\/code>/.exec(text) ?? []
  return plainLine(directory)
}

const allTaken = async (ports: ReadonlyArray<number>): Promise<Error> => {
  const [port = 0] = ports
  const directory = await foreignDirectory(urlOf(port))
  const what =
    directory === "" ? "Another program" : `The service of the data directory ${directory}`
  return new Error(
    `${what} has the port ${port}. Stop it, or choose another port: svc dev --service-port ${port + 1}.`
  )
}

/** Uses the service that runs already, or starts one at the first free port. */
const findOrStart = async (options: LocalServiceOptions): Promise<Shared | string> => {
  const known = running.get(options.dataDir)
  if (known !== undefined) return known
  for (const port of options.ports) {
    const occupant = await occupantOf(port, options.dataDir)
    if (occupant === "own") return urlOf(port)
    if (occupant === "nothing") return start(options, port)
  }
  throw await allTaken(options.ports)
}

/** Starts the service, or finds the one that runs already. */
export const localService = async (options: LocalServiceOptions): Promise<LocalService> => {
  const { dataDir } = options
  const found = await findOrStart(options)
  const url = typeof found === "string" ? found : urlOf(found.port)
  const release = releaseOf(typeof found === "string" ? undefined : found)
  if (typeof found !== "string") {
    found.users += 1
    await untilReady(url, found).catch(async (cause: unknown) => {
      await release()
      throw cause
    })
  }
  const keys = await keysFor(url, dataDir)
  if (keys !== undefined) return { url, ...keys, release }
  await release()
  throw await allTaken([Number(new URL(url).port)])
}
