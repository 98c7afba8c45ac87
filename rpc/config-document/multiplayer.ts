/**
 * Section `multiplayer` of the environment config: the modes of rooms. Without defined modes there is
 * one built-in mode; with any, only the defined modes exist.
 */
import { Schema, SchemaGetter } from "effect"
import { authorityFields } from "./authority.ts"
import { choice, integer, list, optional, section, toggle } from "./fields.ts"
import { configLimits } from "./limits.ts"
import { key, text } from "./text.ts"

const players = (value: number, description: string) =>
  integer(description, { minimum: 1, maximum: configLimits.playersMax, default: value })

const PeerToPeer = section('Settings of a mode whose transport is "p2p".', {
  maxPlayers: integer(
    "Mesh size limit: the mode's maxPlayers is capped to it, minPlayers must not exceed it.",
    { minimum: configLimits.p2pPlayersMin, maximum: configLimits.p2pPlayersMax, default: 4 }
  ),
  relayOnly: toggle(
    "Route everyone through a relay, so that players never see an IP address.",
    true
  )
})

/** The fields of a mode; `rules.ts` checks them against each other. */
export const ModeFields = section("A mode.", {
  key: key("Used to create or quick-match in this mode."),
  title: text("The mode's name for people."),
  minPlayers: players(2, "Quick match starts when this many wait."),
  maxPlayers: players(4, "The seats of a room; must be >= minPlayers."),
  fillTimeoutSeconds: integer("Start with fewer players after this time; 0 = wait forever.", {
    minimum: 0,
    maximum: configLimits.fillTimeoutSecondsMax,
    default: 15
  }),
  transport: choice("p2p: players exchange game messages directly (WebRTC); no referee.", [
    "server",
    "p2p"
  ]),
  p2p: optional(PeerToPeer),
  durable: toggle(
    "Acknowledge a confirmed change of state only once it is stored: no crash takes it back. It takes a write longer."
  ),
  reconnectSeconds: integer("How long a dropped player's seat is kept, in seconds.", {
    minimum: 0,
    maximum: configLimits.graceSecondsMax,
    default: configLimits.graceSecondsDefault
  }),
  ...authorityFields
})

/** A mode; in a peer-to-peer mode `maxPlayers` is already capped to `p2p.maxPlayers`. */
export const Mode = ModeFields.pipe(
  Schema.decode({
    decode: SchemaGetter.transform((mode) =>
      mode.transport === "p2p"
        ? { ...mode, maxPlayers: Math.min(mode.maxPlayers, mode.p2p.maxPlayers) }
        : mode
    ),
    encode: SchemaGetter.passthrough()
  })
)
export type Mode = typeof Mode.Type

/** Section `multiplayer`. */
export const Multiplayer = section("Rooms and matchmaking.", {
  modes: list(
    "The modes that a room is created in; with none, there is a mode named default.",
    Mode,
    configLimits.modesMax
  )
})

interface WithModes {
  readonly multiplayer: typeof Multiplayer.Type
}

/** The mode of an environment whose config defines none. */
export const builtInMode: Mode = Schema.decodeSync(Mode)({
  key: "default",
  minPlayers: 2,
  maxPlayers: 8,
  fillTimeoutSeconds: 15
})

/** Returns the modes of an environment: the defined ones, or the built-in mode. */
export const modesOf = ({ multiplayer: { modes } }: WithModes): ReadonlyArray<Mode> =>
  modes.length === 0 ? [builtInMode] : modes

/** Finds a mode by its key. */
export const findMode = (config: WithModes, key: string): Mode | undefined =>
  modesOf(config).find((mode) => mode.key === key)
