/**
 * A feature as the API declares it, in its file `rpc/<word>.ts` or `rpc/<word>/feature.ts`.
 * `rpc/features.ts` lists all; the API, the tags of its document and the limits of players are collected
 * from there.
 */
import { Context, type Schema } from "effect"
import { type HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"

/** Sections of the API page, in their order. */
export const sections = {
  players: "Player API",
  games: "Game API",
  server: "Server API",
  project: "Project API",
  developers: "Developers and platform"
} as const
export type Section = keyof typeof sections

/** Section of a group on the API page. */
export const GroupSection = Context.Reference<Section | undefined>("rpc/feature/GroupSection", {
  defaultValue: () => undefined
})

/** Names a group on the API page. */
export const tag = (section: Section, title: string, description: string) =>
  Context.merge(OpenApi.annotations({ title, description }), Context.make(GroupSection, section))

/** Begins a group with its name on the API page. */
export const group = <Id extends string>(
  id: Id,
  section: Section,
  title: string,
  description: string
) => HttpApiGroup.make(id).annotateMerge(tag(section, title, description))

const audiences = {
  server: "For your own server, with the environment's secret key.",
  project: "For developers of the project, with a developer session."
}

/** Names the mount of a group for servers or for developers, by the name of the group itself. */
export const tagMount = <Id extends string, E extends HttpApiEndpoint.Constraint>(
  group: HttpApiGroup.HttpApiGroup<Id, E>,
  section: keyof typeof audiences
) => {
  const title = Context.getOrUndefined(group.annotations, OpenApi.Title)
  const description = Context.getOrUndefined(group.annotations, OpenApi.Description)
  if (title === undefined || description === undefined) return group
  const isOther = Context.get(group.annotations, GroupSection) !== section
  const name = isOther ? `${title} (${section})` : title
  return group.annotateMerge(tag(section, name, `${description} ${audiences[section]}`))
}

export interface Feature<Groups, InProcess, Exported> {
  /** The word of the feature: its file or folder in every room. */
  readonly word: string
  readonly groups: Groups
  /** Groups that only calls in the process reach. */
  readonly inProcess: InProcess
  /** Words of further rate limits kept for each player, beside those of `PlayerRate`. */
  readonly playerLimits: ReadonlyArray<string>
  /** What the export of a player's data says: its properties. */
  readonly exported?: Exported
}

type Groups = ReadonlyArray<HttpApiGroup.Constraint>

/** Declares a feature. */
export const feature = <
  const G extends Groups,
  const P extends Groups = readonly [],
  const E extends Schema.Struct.Fields = {}
>(
  options: Pick<Feature<G, P, E>, "groups" | "word"> & Partial<Feature<G, P, E>>
): Feature<G, P | readonly [], E> => ({ inProcess: [], playerLimits: [], ...options })
