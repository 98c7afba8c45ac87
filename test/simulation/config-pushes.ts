/**
 * The config of the environment in a simulated cluster, and the developers who push new versions: other
 * sizes, a mode less, no rooms. Nodes read it through the service's own cache and learn of
 * pushes by `Invalidations`.
 */
import { Cache, Effect, Layer, Option, Record, Stream } from "effect"
import { featureTable } from "#rpc/config-document/features"
import { ConfigRepository } from "#sql/config"
import { Configs, makeConfigCache } from "#server/features/config/service"
import type { Database } from "./database.ts"
import { document, environmentId } from "./environment.ts"
import type { Invalidations } from "./invalidations.ts"
import type { Chance } from "./random.ts"
import type { Process, Simulator } from "./simulator.ts"

const { features, multiplayer } = document

/** The documents that developers push; the first one has everything. */
const documents = [
  document,
  {
    features,
    multiplayer: {
      modes: multiplayer.modes.map((mode) =>
        mode.key === "party" ? { ...mode, minPlayers: 2, maxPlayers: 3 } : mode
      )
    }
  },
  { features, multiplayer: { modes: multiplayer.modes.filter(({ key }) => key !== "duel") } },
  { features: { ...features, multiplayer: false }, multiplayer }
]

export class ConfigPushes {
  readonly #database: Database
  readonly #invalidations: Invalidations
  #document: (typeof documents)[number] = document
  #version = 1

  constructor(database: Database, invalidations: Invalidations) {
    this.#database = database
    this.#invalidations = invalidations
  }

  /** The number of the newest config. */
  get version(): number {
    return this.#version
  }

  /** Whether the newest config allows rooms. */
  get multiplayer(): boolean {
    return this.#document.features.multiplayer
  }

  /** Pushes one of the documents, unless the database is away. */
  push(simulator: Simulator, chance: Chance): void {
    this.#push(simulator, chance.pick(documents) ?? document)
  }

  /** Pushes the document that has everything. */
  restore(simulator: Simulator): void {
    if (this.#document !== document) this.#push(simulator, document)
  }

  #push(simulator: Simulator, pushed: (typeof documents)[number]): void {
    if (!this.#database.commits) return
    this.#document = pushed
    this.#version += 1
    simulator.note(`config ${this.#version} is pushed: ${JSON.stringify(pushed)}`)
    this.#invalidations.announce({ kind: "config", id: environmentId })
  }

  /** The configs of a node. */
  configsOf(process: Process) {
    const row = () =>
      Option.some({ document: this.#document, version: this.#version, voiceSuspended: false })
    const repository = Layer.mock(ConfigRepository)({
      newest: () => this.#database.read(process, row)
    })
    return Layer.effect(
      Configs,
      Effect.map(makeConfigCache(new Set(Record.keys(featureTable))), ({ cached, changes }) =>
        Configs.of({
          current: (id) => Cache.get(cached, id),
          changes: Stream.fromPubSub(changes),
          push: () => Effect.die("Developers push past the nodes"),
          validate: () => Effect.die("Developers push past the nodes"),
          warnings: () => Effect.succeed([]),
          addCheck: () => Effect.void
        })
      )
    ).pipe(Layer.provide(repository))
  }
}
