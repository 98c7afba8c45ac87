/**
 * What the features store about a player, for its export and its deletion. Each feature declares its part in
 * its `feature.ts`, from where the service collects them.
 */
import { Context, Effect, type Option, type Schema } from "effect"
import type { Unavailable } from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import type { PlayerRow } from "#sql/players"

/** One table with player ids. */
export interface PlayerTable<Property = string> {
  readonly table: string
  /** Property of the export; null if the table adds nothing to other properties. */
  readonly exportedAs: Property | null
  /**
   * `itself`: the player row. `cascade`: deleted by the foreign key. `statement`: deleted by another
   * statement of the same transaction. `entity`: the entity that owns the row removes the player and
   * saves. `retained`: stays for audits and legal duties; the id no longer identifies anybody.
   */
  readonly deletion: "itself" | "cascade" | "statement" | "entity" | "retained"
}

/** Names a player. */
export interface PlayerKey {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
}

/** A player whose data is exported. */
export interface StoredPlayer extends PlayerKey {
  readonly row: PlayerRow
}

/** A property of the export whose values are sent one at a time, as JSON text. */
export interface LargeProperty<Property = string> {
  readonly property: Property
  /** Reads the first value with a key after this one. */
  readonly next: (
    player: PlayerKey,
    after: string
  ) => Effect.Effect<Option.Option<{ readonly key: string; readonly json: string }>>
}

/** What one feature does in the export and the deletion of a player. */
export interface PlayerPart<Exported = object, Property = string> {
  readonly read?: (player: StoredPlayer) => Effect.Effect<Exported>
  readonly large?: LargeProperty<Property>
  /**
   * Prepares the deletion where no statement reaches, before its transaction. Returns what remains to do
   * after the commit.
   */
  readonly leave?: (player: PlayerKey) => Effect.Effect<Effect.Effect<void>, Unavailable>
}

/** Declares the part of a feature. The properties that it reads have the types of its contract. */
export const playerPart = <Fields extends Schema.Struct.Fields, R = never>(
  _contract: { readonly exported?: Fields },
  tables: ReadonlyArray<PlayerTable<keyof Fields & string>>,
  make: Effect.Effect<
    PlayerPart<Schema.Struct.Type<Fields>, keyof Fields & string>,
    never,
    R
  > = Effect.succeed({})
) => ({ tables, make })

/** The parts of all features. */
export class PlayerParts extends Context.Service<PlayerParts, ReadonlyArray<PlayerPart>>()(
  "server/platform/player-parts/PlayerParts"
) {}
