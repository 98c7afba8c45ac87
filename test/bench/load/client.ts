/** The benchmark's end of a load generator: one process that sends and receives for one server. */
import { on } from "node:events"
import { fileURLToPath } from "node:url"
import * as Schema from "effect/Schema"
import { launch, stop } from "../process.ts"
import {
  type Command,
  Failed,
  type Figures,
  Finished,
  Joined,
  type Load,
  type Target,
  WindowClosed,
  WindowOpened
} from "./protocol.ts"

const script = fileURLToPath(new URL("./generator.ts", import.meta.url))

export interface GeneratorOptions {
  readonly server: string
  readonly target: Target
  readonly load: Load
  readonly core: number | undefined
}

interface WindowHooks {
  readonly opened: () => Promise<void>
  readonly closed: () => Promise<void>
}

export interface Generator {
  /** Sends for `leadMs + windowMs` and calls the hooks at both ends of the window. */
  readonly run: (leadMs: number, windowMs: number, hooks: WindowHooks) => Promise<Figures>
  readonly stop: () => Promise<void>
}

/** Starts a generator and seats all its players. */
export async function startGenerator(options: GeneratorOptions): Promise<Generator> {
  const { core, load, server, target } = options
  const child = launch({ script, args: [], core })
  const messages = on(child, "message", { close: ["exit"] })
  const tell = (command: Command) => child.send(command)
  const next = async <A>(schema: Schema.Decoder<A>): Promise<A> => {
    const message = await messages.next()
    if (message.done === true) throw new Error(`the load generator of ${server} ended early`)
    const [report] = message.value
    if (Schema.is(Failed)(report)) throw new Error(`${server}: ${report.message}`)
    return Schema.decodeUnknownSync(schema)(report)
  }
  try {
    tell({ t: "join", server, target, load })
    await next(Joined)
  } catch (error) {
    await stop(child)
    throw error
  }
  return {
    run: async (leadMs, windowMs, hooks) => {
      tell({ t: "run", leadMs, windowMs })
      await next(WindowOpened)
      await hooks.opened()
      await next(WindowClosed)
      await hooks.closed()
      return (await next(Finished)).figures
    },
    stop: () => stop(child)
  }
}
