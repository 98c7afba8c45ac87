/** Runs the real `svc` in a temporary folder, isolated from the user's files. */
import { type ChildProcess, fork, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { readFile, writeFile } from "node:fs/promises"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { at } from "#testing/players"
import type { SvcRun } from "./svc-process.ts"
import { dataFolder } from "../data-folder.ts"

const bin = fileURLToPath(new URL("../../../src/cli/svc.js", import.meta.url))
const svcProcess = fileURLToPath(new URL("svc-process.ts", import.meta.url))
const compileCache = fileURLToPath(new URL("../../../node_modules/.cache/svc", import.meta.url))
const nodeBin = fileURLToPath(new URL("../../../node_modules/.bin", import.meta.url))

/** The result of a run. */
export interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
  /** Starts a process for this run alone, as each run with options for Node or for its output does. */
  readonly isSpawned?: boolean
  /** Options for Node. */
  readonly node?: ReadonlyArray<string>
  /** Ends the run, as Ctrl-C does, once this holds for what it has printed so far. */
  readonly until?: (stdout: string) => boolean
  /** Runs with all that the run has printed on standard error so far. */
  readonly onError?: (stderr: string) => void
  /** A folder below the temporary one. */
  readonly cwd?: string
}

/** A folder to run `svc` in. */
export interface Folder {
  readonly path: string
  /** Runs `svc` with words, which are separated by blanks or listed. */
  readonly svc: (args: string | ReadonlyArray<string>, options?: RunOptions) => Effect.Effect<Run>
  readonly read: (file: string) => Effect.Effect<string>
  readonly write: (file: string, content: unknown) => Effect.Effect<void>
}

const nodePath = join(nodeBin, "node")

interface Started {
  readonly words: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** Starts the real `svc`: for what is about the process, its signals or its output as it comes. */
const spawned = ({ cwd, env, words }: Started, options: RunOptions) =>
  Effect.callback<Run>((resume) => {
    const { node = [], stdin = "" } = options
    const child = spawn(nodePath, [...node, bin, ...words], { cwd, env })
    let stdout = ""
    let stderr = ""
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString()
      if (options.until?.(stdout) === true) child.kill("SIGINT")
    })
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString()
      options.onError?.(stderr)
    })
    child.on("close", (code) => resume(Effect.succeed({ code, stdout, stderr })))
    child.stdin.end(stdin)
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Processes of this worker that wait for a run. They end with the worker. */
const idle: Array<ChildProcess> = []

const startProcess = (): ChildProcess =>
  fork(svcProcess, {
    execPath: nodePath,
    execArgv: [],
    env: { NODE_COMPILE_CACHE: compileCache },
    stdio: ["ignore", "pipe", "pipe", "ipc"]
  })

/** Runs `svc` in a process that runs others after it. */
const reused = (started: Started, { stdin = "" }: RunOptions) =>
  Effect.callback<Run>((resume) => {
    const child = idle.pop() ?? startProcess()
    const mark = `\u0000${randomUUID()}\u0000`
    const texts = { stdout: "", stderr: "" }
    let code: number | undefined
    const isDone = () =>
      code !== undefined && texts.stdout.endsWith(mark) && texts.stderr.endsWith(mark)
    const finish = () => {
      if (!isDone()) return
      for (const from of [child, child.stdout, child.stderr]) from?.removeAllListeners()
      idle.push(child)
      const [stdout, stderr] = [texts.stdout, texts.stderr].map((it) => it.slice(0, -mark.length))
      resume(Effect.succeed({ code: code ?? null, stdout: stdout ?? "", stderr: stderr ?? "" }))
    }
    for (const name of ["stdout", "stderr"] as const) {
      child[name]?.setEncoding("utf8").on("data", (text: string) => {
        texts[name] += text
        finish()
      })
    }
    child.on("message", (message) => {
      code = Number(at(message, "code"))
      finish()
    })
    child.on("exit", (ended) => resume(Effect.succeed({ code: ended, ...texts })))
    child.send({ ...started, stdin, mark } satisfies SvcRun)
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const runIn = (folder: string, env: Readonly<Record<string, string>>): Folder["svc"] =>
  Effect.fnUntraced(function* (args: string | ReadonlyArray<string>, options: RunOptions = {}) {
    const started = {
      words: typeof args === "string" ? args.split(" ").filter((word) => word !== "") : args,
      cwd: join(folder, options.cwd ?? "."),
      env: {
        PATH: [nodeBin, "/usr/bin", "/bin"].join(delimiter),
        HOME: folder,
        SVC_CONFIG_DIR: join(folder, "user"),
        ...env,
        ...options.env
      }
    }
    const { isSpawned = false, node, onError, until } = options
    const needsOwn = [node, onError, until].some((option) => option !== undefined)
    return yield* isSpawned || needsOwn ? spawned(started, options) : reused(started, options)
  })

/** Makes a temporary folder that the scope removes. Every run in it has these environment variables. */
export const makeFolder = (env: Readonly<Record<string, string>> = {}) =>
  Effect.map(dataFolder("svc-cli-"), (path): Folder => ({
    path,
    svc: runIn(path, env),
    read: (file) => Effect.promise(() => readFile(join(path, file), "utf8")),
    write: (file, content) =>
      Effect.promise(() =>
        writeFile(
          join(path, file),
          typeof content === "string" ? content : JSON.stringify(content, null, 2)
        )
      )
  }))
