/** `svc dev` as a child process, with its output in every failure. */
import { spawn } from "node:child_process"
import { stripVTControlCharacters } from "node:util"

/** A running `svc dev`. */
export interface DevServer {
  /** Address of the game. */
  readonly url: string
  /** Runs a step of a test; its failure says which it was, and what `svc dev` has printed. */
  readonly step: <A>(name: string, run: () => Promise<A>) => Promise<A>
  /** Ends it as Ctrl-C does, and fails when it does not end. */
  readonly stop: () => Promise<void>
}

/** Timeout of a step, on a busy machine. */
export const stepMillis = 60_000

/** A first start makes a database. */
const startMillis = 120_000

const within = <A>(millis: number, promise: Promise<A>): Promise<A> => {
  const timeout = AbortSignal.timeout(millis)
  const late = new Promise<never>((_, reject) => {
    timeout.addEventListener("abort", () => reject(new Error(`took longer than ${millis} ms`)))
  })
  return Promise.race([promise, late])
}

/** Starts `svc dev` in the folder of a game, and waits for its address. */
export const startDev = async (svc: string, folder: string, port: number): Promise<DevServer> => {
  const words = [svc, "dev", "--no-open", "--port", String(port)]
  const child = spawn(process.execPath, words, { cwd: folder, stdio: "pipe" })
  let output = ""
  const ended = new Promise<void>((resolve) => {
    child.once("exit", (code, signal) => {
      output += `\n(svc dev has ended: ${code ?? signal})`
      resolve()
    })
  })
  const ready = new Promise<void>((resolve) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString()
      if (stripVTControlCharacters(output).includes("Local:")) resolve()
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
  })
  const step: DevServer["step"] = async (name, run) => {
    try {
      return await within(startMillis, run())
    } catch (cause) {
      throw new Error(`${name}: ${String(cause)}\nsvc dev printed:\n${output}`, { cause })
    }
  }
  const hasEnded = async (): Promise<void> => {
    await ended
    throw new Error("it has ended")
  }
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM")
    await step("svc dev stops", () => ended)
  }
  try {
    await step("svc dev starts", () => Promise.race([ready, hasEnded()]))
  } catch (error) {
    child.kill("SIGKILL")
    throw error
  }
  return { url: `http://localhost:${port}/`, step, stop }
}
