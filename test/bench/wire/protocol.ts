/** What the benchmark and its load generator say to each other over the IPC channel. */
import * as Schema from "effect/Schema"

/** `rooms` rooms of `players` players. */
export const Shape = Schema.Struct({ rooms: Schema.Int, players: Schema.Int })
export type Shape = typeof Shape.Type

/** Where a server is, and the publishable key if it wants one. */
export const Target = Schema.Struct({
  url: Schema.String,
  key: Schema.String,
  /** Another process of the same service, where every other player of a room connects. */
  secondUrl: Schema.optionalKey(Schema.String)
})
export type Target = typeof Target.Type

const Join = Schema.Struct({
  t: Schema.Literal("join"),
  server: Schema.String,
  target: Target,
  shapes: Schema.Array(Shape)
})

/**
 * The players of one shape send for `leadMs + windowMs`, each `rate` messages a second; only the window
 * is measured.
 */
const Run = Schema.Struct({
  t: Schema.Literal("run"),
  shape: Schema.Int,
  rate: Schema.Number,
  leadMs: Schema.Int,
  windowMs: Schema.Int
})

export const Command = Schema.Union([Join, Run])
export type Command = typeof Command.Type

export const Joined = Schema.Struct({ t: Schema.Literal("joined") })
export const WindowOpened = Schema.Struct({ t: Schema.Literal("windowOpened") })
export const WindowClosed = Schema.Struct({ t: Schema.Literal("windowClosed") })

/** What one run came to; times in microseconds. */
export const Figures = Schema.Struct({
  /** Deliveries that arrived between windowOpened and windowClosed. */
  windowDeliveries: Schema.Int,
  /** Of the whole run, lead and drain included. */
  expected: Schema.Int,
  delivered: Schema.Int,
  /** Sum over players of |expected - delivered|: a loss here and a duplicate there do not cancel. */
  miscounted: Schema.Int,
  /** Scheduled send to arrival, of messages scheduled in the window. */
  latencyP50: Schema.Number,
  latencyP99: Schema.Number,
  latencyP999: Schema.Number,
  latencyMax: Schema.Number,
  /** How late the generator itself was with sends; part of every latency above. */
  lateP99: Schema.Number,
  /** CPU time of the generator in the window, in percent of one core. */
  busyPercent: Schema.Number
})
export type Figures = typeof Figures.Type

export const Finished = Schema.Struct({ t: Schema.Literal("finished"), figures: Figures })

export const Failed = Schema.Struct({ t: Schema.Literal("failed"), message: Schema.String })

export type Report =
  | typeof Joined.Type
  | typeof WindowOpened.Type
  | typeof WindowClosed.Type
  | typeof Finished.Type
  | typeof Failed.Type
