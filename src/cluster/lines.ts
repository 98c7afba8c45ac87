/**
 * The lines between this node and others (see {@link RoomLines}): one call at a time and node, with
 * everything that has gathered meanwhile, at most every few milliseconds. A call costs the same
 * whether it carries one command or a hundred.
 */
import { Clock, Effect, Exit, Layer, Option, Schema, Scope } from "effect"
import { RunnerAddress, Runners, ShardingConfig } from "effect/cluster"
import { Rpc, RpcClient, RpcGroup } from "effect/rpc"
import { LocalRooms } from "#entities/room/entity"
import { LineInputs, LineItems, RoomLines } from "#entities/room/lines"
import { rooms } from "#rpc/limits"
import { TurnTimers } from "../realtime/turn.ts"

const Freight = Schema.fromJsonString(
  Schema.Struct({ inputs: Schema.Array(LineInputs), items: Schema.Array(LineItems) })
)

/** What another node has for this one; answers the rooms that are not here for those commands. */
export class LineRpcs extends RpcGroup.make(
  Rpc.make("Deliver", {
    payload: { freight: Schema.String },
    success: Schema.Array(Schema.String)
  })
) {}

const decodeFreight = Schema.decodeUnknownEffect(Freight)

/** Hands what arrives to the rooms and the gateway of this node. */
export const LineHandlers = LineRpcs.toLayer(
  Effect.gen(function* () {
    const local = yield* LocalRooms
    return LineRpcs.of({
      Deliver: Effect.fnUntraced(function* ({ freight }) {
        const { inputs, items } = yield* Effect.orDie(decodeFreight(freight))
        const refused: Array<string> = []
        for (const { inputs: commands, node, room } of inputs) {
          const actor = local.actors.get(room)
          if (actor === undefined || actor.fenced || !actor.watches(node)) refused.push(room)
          else actor.submit(node, commands)
        }
        for (const told of items) local.deliverFar(told)
        return refused
      })
    })
  })
)

interface Load {
  inputs: Array<LineInputs>
  items: Array<LineItems>
  /** Whom to tell when the load does not arrive: of each of the inputs, then of each of the items. */
  lostInputs: Array<() => void>
  lostItems: Array<() => void>
}

const emptyLoad = (): Load => ({ inputs: [], items: [], lostInputs: [], lostItems: [] })

/** Delivers freight; answers the rooms that refused their commands. */
type Deliver = (freight: string) => Effect.Effect<ReadonlyArray<string>, unknown>

/** A line to one node. */
export class Line {
  readonly #deliver: Deliver
  readonly #run: (effect: Effect.Effect<void>) => void
  readonly #now: () => number
  readonly #timers: TurnTimers
  #load = emptyLoad()
  #scheduled = false
  #busy = false
  #leftAt = 0

  constructor(options: {
    readonly deliver: Deliver
    readonly run: (effect: Effect.Effect<void>) => void
    readonly now: () => number
    readonly timers: TurnTimers
  }) {
    this.#deliver = options.deliver
    this.#run = options.run
    this.#now = options.now
    this.#timers = options.timers
  }

  submit(inputs: LineInputs, lost: () => void): void {
    if (this.#load.inputs.length >= rooms.watchBufferItems) return lost()
    this.#load.inputs.push(inputs)
    this.#load.lostInputs.push(lost)
    this.#schedule()
  }

  tell(items: LineItems, lost: () => void): void {
    if (this.#load.items.length >= rooms.watchBufferItems) return lost()
    this.#load.items.push(items)
    this.#load.lostItems.push(lost)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#busy) return
    this.#scheduled = true
    const wait = this.#leftAt + rooms.lineMillis - this.#now()
    if (wait <= 0 || wait > rooms.lineMillis) this.#timers.soon(this.#leave)
    else this.#timers.later(this.#leave, wait)
  }

  readonly #leave = (): void => {
    this.#scheduled = false
    this.#busy = true
    this.#leftAt = this.#now()
    const load = this.#load
    this.#load = emptyLoad()
    const { inputs, items, lostInputs, lostItems } = load
    this.#run(
      Effect.map(Effect.exit(this.#deliver(JSON.stringify({ inputs, items }))), (exit) => {
        this.#busy = false
        if (Exit.isFailure(exit)) {
          for (const lost of [...lostInputs, ...lostItems]) lost()
        } else if (exit.value.length > 0) {
          const refused = new Set(exit.value)
          for (const [i, { room }] of inputs.entries()) if (refused.has(room)) lostInputs[i]?.()
        }
        if (this.#load.inputs.length + this.#load.items.length > 0) this.#schedule()
      })
    )
  }
}

const addressText = ({ host, port }: RunnerAddress.RunnerAddress): string => `${host}|${port}`

const addressOf = (text: string): RunnerAddress.RunnerAddress => {
  const [host = "", port] = text.split("|")
  return RunnerAddress.make(host, Number(port))
}

const makeLineClient = RpcClient.make(LineRpcs, { disableTracing: true })
type LineClient = Effect.Success<typeof makeLineClient>

/** Calls another node's handlers; a connection that failed is replaced. */
const makeDeliver = Effect.fnUntraced(function* (to: string) {
  const protocols = yield* Runners.RpcClientProtocol
  const scope = yield* Effect.scope
  let open: { readonly client: LineClient; readonly scope: Scope.Closeable } | undefined

  const connect = Effect.gen(function* () {
    const own = yield* Scope.fork(scope)
    const protocol = yield* Scope.provide(protocols.make(addressOf(to)), own)
    const client = yield* makeLineClient.pipe(
      Effect.provideService(RpcClient.Protocol, protocol),
      Scope.provide(own)
    )
    open = { client, scope: own }
    return client
  })

  const hangUp = Effect.suspend(() => {
    const closing = open
    open = undefined
    return closing === undefined ? Effect.void : Scope.close(closing.scope, Exit.void)
  })

  return (freight: string) =>
    Effect.suspend(() => (open === undefined ? connect : Effect.succeed(open.client))).pipe(
      Effect.flatMap((client) => client.Deliver({ freight })),
      Effect.onError(() => hangUp)
    )
})

/** The lines of this runner. */
export const RoomLinesLive = Layer.effect(
  RoomLines,
  Effect.gen(function* () {
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    const clock = yield* Clock.Clock
    const timers = yield* TurnTimers
    const scope = yield* Effect.scope
    const context = yield* Effect.context<Runners.RpcClientProtocol | Scope.Scope>()
    const runFork = Effect.runForkWith(context)
    const lines = new Map<string, Line>()

    const lineTo = (to: string): Line => {
      const known = lines.get(to)
      if (known !== undefined) return known
      const deliver = Effect.runSyncWith(context)(makeDeliver(to))
      const line = new Line({
        deliver,
        run: (effect) => void runFork(Effect.forkIn(effect, scope)),
        now: () => clock.currentTimeMillisUnsafe(),
        timers
      })
      lines.set(to, line)
      return line
    }

    return {
      address: Option.getOrNull(Option.map(runnerAddress, addressText)),
      submit: (to, inputs, lost) => lineTo(to).submit(inputs, lost),
      tell: (to, items, lost) => lineTo(to).tell(items, lost)
    }
  })
)
