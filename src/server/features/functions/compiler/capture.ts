/**
 * Replaces the process start of miniflare and captures the configuration that miniflare writes to it.
 * The service starts the program itself, under its supervisor.
 */
import childProcess from "node:child_process"
import { EventEmitter } from "node:events"
import { createRequire } from "node:module"
import { PassThrough, Writable } from "node:stream"

class Captured extends EventEmitter {
  readonly #chunks: Array<Buffer> = []
  readonly pid = 0
  readonly stdin = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      this.#chunks.push(chunk)
      done()
    }
  })
  readonly stdout = new PassThrough()
  readonly stderr = new PassThrough()
  readonly stdio = [this.stdin, this.stdout, this.stderr, new PassThrough()]

  constructor(keep: (config: Buffer) => void) {
    super()
    this.stdin.on("finish", () => {
      keep(Buffer.concat(this.#chunks))
      setImmediate(() => this.emit("exit", 0))
    })
  }

  kill(): boolean {
    return true
  }
}

let keep: (config: Buffer) => void = () => undefined

/** Disables process starts in this process. Call it before loading miniflare. */
export const captureSpawns = (): void => {
  const spawn = () => new Captured((config) => keep(config))
  Object.assign(childProcess, { spawn })
  Object.assign(createRequire(import.meta.url)("node:child_process"), { spawn })
}

/** Returns the configuration that `work` writes. */
export const captured = async (work: () => Promise<unknown>): Promise<Buffer> => {
  let config: Buffer | undefined
  keep = (given) => {
    config = given
  }
  // The work fails after it has written: its program has ended at once.
  const failure = await work().then(
    () => undefined,
    (error: unknown) => error
  )
  if (config === undefined) throw failure
  return config
}
