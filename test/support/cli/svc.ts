/** Runs the real `svc` as a process in a temporary folder, isolated from the user's files. */
import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

const bin = fileURLToPath(new URL("../../../src/cli/svc.js", import.meta.url))
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
  readonly svc: (args: string, options?: RunOptions) => Effect.Effect<Run>
  readonly read: (file: string) => Effect.Effect<string>
  readonly write: (file: string, content: unknown) => Effect.Effect<void>
}

const runIn = (folder: string, env: Readonly<Record<string, string>>): Folder["svc"] =>
  Effect.fnUntraced(function* (args: string, options: RunOptions = {}) {
    const { cwd = ".", node = [], stdin = "" } = options
    const words = args.split(" ").filter((word) => word !== "")
    return yield* Effect.callback<Run>((resume) => {
      const child = spawn(join(nodeBin, "node"), [...node, bin, ...words], {
        cwd: join(folder, cwd),
        env: {
          PATH: [nodeBin, "/usr/bin", "/bin"].join(delimiter),
          HOME: folder,
          SVC_CONFIG_DIR: join(folder, "user"),
          ...env,
          ...options.env
        }
      })
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
  })

/** Makes a temporary folder that the scope removes. Every run in it has these environment variables. */
export const makeFolder = (env: Readonly<Record<string, string>> = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "svc-cli-"))),
      (path) => Effect.promise(() => rm(path, { recursive: true }))
    ),
    (path): Folder => ({
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
    })
  )
