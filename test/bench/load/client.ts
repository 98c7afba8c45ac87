/** The benchmark's end of a load generator: one process that sends and receives for one server. */
import { on } from "node:events"
import { fileURLToPath } from "node:url"
import * as Schema from "effect/Schema"
import { launch, stop } from "../machine/process.ts"
import {
  type Command,
  Failed,
  type Figures,
  Finished,
  Joined,
  type Shape,
  type Target,
  WindowClosed,
  WindowOpened
} from "../wire/protocol.ts"

const script = fileURLToPath(new URL("./generator.ts", import.meta.url))

export interface GeneratorOptions {
  readonly server: string
  readonly target: Target
  readonly shapes: ReadonlyArray<Shape>
  readonly core: number | undefined
}

interface WindowHooks {
  readonly opened: () => Promise<void>
  readonly closed: () => Promise<void>
}

/** One run of the players of `shape`, an index. */
export interface Run {
  readonly shape: number
  /** Messages a second of each player. */
  readonly rate: number
  readonly leadMs: number
  readonly windowMs: number
}

export interface Generator {
  /** Sends for `leadMs + windowMs` and calls the hooks at both ends of the window. */
  readonly run: (run: Run, hooks: WindowHooks) => Promise<Figures>
  readonly stop: () => Promise<void>
}

/** Starts a generator and seats all its players. */
export async function startGenerator(options: GeneratorOptions): Promise<Generator> {
  const { core, server, shapes, target } = options
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
    tell({ t: "join", server, target, shapes })
    await next(Joined)
  } catch (error) {
    await stop(child)
    throw error
  }
  return {
    run: async (run, hooks) => {
      tell({ t: "run", ...run })
      await next(WindowOpened)
      await hooks.opened()
      await next(WindowClosed)
      await hooks.closed()
      return (await next(Finished)).figures
    },
    stop: () => stop(child)
  }
}
