/**
 * Process that compiles configurations with miniflare for the service that forked it, one at a time.
 * Miniflare is a development library: the service and running functions never load it.
 */
import type { MiniflareOptions } from "miniflare"
import { captured, captureSpawns } from "./capture.ts"
import { type CompileInput, miniflareOptions } from "./worker-options.ts"

export interface CompileRequest {
  readonly id: number
  readonly input: CompileInput
}

/** Compiled configuration, or the reason of the failure. */
export type CompileReply =
  | { readonly id: number; readonly config: Uint8Array }
  | { readonly id: number; readonly problem: string }

captureSpawns()

const { Log, LogLevel, Miniflare } = await import("miniflare")

const compile = async (input: CompileInput): Promise<Uint8Array> => {
  const options: Partial<MiniflareOptions> = miniflareOptions(input)
  const miniflare = new Miniflare({
    ...options,
    log: new Log(LogLevel.NONE),
    handleRuntimeStdio: () => undefined
  } as MiniflareOptions)
  try {
    return await captured(() => miniflare.ready)
  } finally {
    // It fails as its program did.
    await miniflare.dispose().catch(() => undefined)
  }
}

const send = (reply: CompileReply): void => {
  process.send?.(reply)
}

let before: Promise<unknown> = Promise.resolve()

process.on("message", ({ id, input }: CompileRequest) => {
  const compiled = before.then(() => compile(input))
  before = compiled.catch(() => undefined)
  compiled.then(
    (config) => send({ id, config }),
    (error: unknown) => send({ id, problem: String(error) })
  )
})
// The service has ended.
process.on("disconnect", () => process.exit())
