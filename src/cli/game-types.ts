/** Prints the types of a game from its config: modes, stats, providers, and a client that knows them. */
import { modesOf } from "#rpc/config-document/multiplayer"
import type { EnvironmentConfig } from "#rpc/config-document/document"

const union = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "never" : names.map((name) => JSON.stringify(name)).join(" | ")

type Title = EnvironmentConfig["stats"][number]["title"] | undefined

/** A text for people as the text of a comment, in the first language that there is. */
const commentText = (title: Title): string => {
  if (title === undefined) return ""
  const text = typeof title === "string" ? title : (Object.values(title)[0] ?? "")
  return text.replaceAll("*/", "* /").replace(/\s+/g, " ").trim()
}

const comment = (indent: string, ...parts: ReadonlyArray<string>): string => {
  const text = parts.filter((part) => part !== "").join(". ")
  return text === "" ? "" : `${indent}/** ${text}. */\n`
}

const aggregations = {
  sum: "Reports add up",
  max: "The largest report counts",
  min: "The smallest report counts",
  latest: "The last report counts"
} as const

const statLines = ({ stats }: EnvironmentConfig): string =>
  stats
    .map(
      ({ aggregation, key, title }) =>
        comment("  ", commentText(title), aggregations[aggregation]) +
        `  readonly ${JSON.stringify(key)}?: number\n`
    )
    .join("")

const modeLines = (config: EnvironmentConfig): string =>
  modesOf(config)
    .map(({ key, maxPlayers, minPlayers, title, transport }) => {
      const size = `${minPlayers === maxPlayers ? "" : `${minPlayers} to `}${maxPlayers} players`
      const fields = `maxPlayers: ${maxPlayers}; transport: ${JSON.stringify(transport)}`
      return (
        comment("  ", commentText(title), size) +
        `  readonly ${JSON.stringify(key)}: { minPlayers: ${minPlayers}; ${fields} }\n`
      )
    })
    .join("")

const providersOf = ({ auth }: EnvironmentConfig): ReadonlyArray<string> =>
  Object.entries(auth.providers).flatMap(([name, { enabled }]) => (enabled ? [name] : []))

const featuresOf = ({ features }: EnvironmentConfig): ReadonlyArray<string> =>
  Object.entries(features).flatMap(([name, on]) => (on ? [name] : []))

const clientText = `/** Rooms of the game's modes. */
export interface GameRooms extends Omit<Rooms, "create" | "list" | "quickMatch"> {
  list(filter?: RoomFilter & { readonly mode?: Mode }): ReturnType<Rooms["list"]>
  create<State = JsonObject, PlayerState = JsonObject, Messages = AnyMessages>(
    room: Parameters<Rooms["create"]>[0] & { readonly mode: Mode },
    options?: EnterOptions
  ): Promise<Room<State, PlayerState, Messages>>
  quickMatch<State = JsonObject, PlayerState = JsonObject, Messages = AnyMessages>(
    mode: Mode,
    options?: EnterOptions
  ): Promise<Room<State, PlayerState, Messages>>
}

/** The game's stats. */
export interface GameStats {
  get(): Promise<StatValues>
  report(values: StatValues, options?: ReportOptions): Promise<GameStatsReported>
}

/** The new values of the stats that were accepted, and what was rejected. */
export interface GameStatsReported extends Omit<StatsReported, "stats"> {
  readonly stats: { readonly [Key in Stat]?: StatsReported["stats"][string] }
}

/** Sign-in with the game's providers. */
export interface GameOAuth extends Omit<OAuth, "signIn" | "link" | "start"> {
  signIn(provider: SignInProvider, options?: ProviderOptions): ReturnType<OAuth["signIn"]>
  link(provider: SignInProvider, options?: ProviderOptions): ReturnType<OAuth["link"]>
  start(provider: SignInProvider, options: StartOptions): ReturnType<OAuth["start"]>
}

/** The client of this game: \`const client: GameClient = createClient({ baseUrl, key })\`. */
export interface GameClient extends Omit<Client, "rooms" | "stats" | "oauth"> {
  readonly rooms: GameRooms
  readonly stats: GameStats
  readonly oauth: GameOAuth
}
`

const imported = [
  "AnyMessages",
  "Client",
  "EnterOptions",
  "JsonObject",
  "OAuth",
  "ProviderOptions",
  "ReportOptions",
  "Room",
  "RoomFilter",
  "Rooms",
  "StartOptions",
  "StatsReported"
]

/** Returns the text of a declaration file for the config. */
export const gameTypes = (config: EnvironmentConfig, file: string): string => `/**
 * Types of this game, written by \`svc types\` from ${file}. Do not edit them: run it again.
 */
import type {
  ${imported.join(",\n  ")}
} from "@player-backend/client"

/** The modes of rooms. */
export interface Modes {
${modeLines(config)}}

/** The key of a mode. */
export type Mode = keyof Modes

/** Values of stats by their keys. */
export interface StatValues {
${statLines(config)}}

/** The key of a stat. */
export type Stat = keyof StatValues

/** The providers that players can sign in with. */
export type SignInProvider = ${union(providersOf(config))}

/** The features that are on. */
export type Feature = ${union(featuresOf(config))}

${clientText}`
