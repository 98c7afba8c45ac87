/** Child processes of tests: their output is in every failure. */
import { spawn } from "node:child_process"

/** How a program runs; without `env`, in the environment of the tests. */
export interface RunOptions {
  readonly cwd: string
  readonly env?: NodeJS.ProcessEnv
  /** Ends the program, which then fails. */
  readonly timeoutMillis?: number
}

/** Runs a program to its end, and returns what it printed; fails with that. */
export const run = (
  { cwd, env, timeoutMillis }: RunOptions,
  program: string,
  ...words: ReadonlyArray<string>
): Promise<string> =>
  new Promise((resolve, reject) => {
    const timeout = timeoutMillis === undefined ? {} : { timeout: timeoutMillis }
    const options = { cwd, ...(env === undefined ? {} : { env }), ...timeout }
    const child = spawn(program, words, { ...options, stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()))
    }
    child.once("error", reject)
    child.once("close", (code, signal) =>
      code === 0
        ? resolve(output)
        : reject(
            new Error(`${program} ${words.join(" ")} ended with ${code ?? signal}:\n${output}`)
          )
    )
  })

/** A program that runs beside the test. */
export interface Running {
  /** Ends it, and waits until it has ended. */
  readonly stop: () => Promise<void>
}

/** Starts a program, and waits until its output has a text; fails with the output when it ends before. */
export const start = async (
  { cwd, env }: RunOptions,
  text: string,
  program: string,
  ...words: ReadonlyArray<string>
): Promise<Running> => {
  const options = { cwd, ...(env === undefined ? {} : { env }) }
  const child = spawn(program, words, { ...options, stdio: ["ignore", "pipe", "pipe"] })
  let output = ""
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()))
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString()
      if (output.includes(text)) resolve()
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.once("error", reject)
    child.once("close", () => reject(new Error(`${program} has ended:\n${output}`)))
  })
  return {
    stop: () => {
      child.kill("SIGTERM")
      return ended
    }
  }
}
