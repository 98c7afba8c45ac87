/**
 * What a valid config document says in vain, or says and does not get. A push succeeds all the same
 * and answers with these (decisions 3.5.1, 3.5.3, 3.12.4).
 */
import { Schema } from "effect"
import type { Issue } from "../errors.ts"
import { EnvironmentConfig } from "./document.ts"

const Raw = Schema.toEncoded(EnvironmentConfig)
type Raw = typeof Raw.Type
const isRaw = Schema.is(Raw)

const modeWarnings = ({ multiplayer }: EnvironmentConfig, raw: Raw): ReadonlyArray<Issue> =>
  multiplayer.modes.flatMap(({ transport, maxPlayers }, index) => {
    const path = `multiplayer.modes[${index}]`
    const written = raw.multiplayer?.modes?.[index]
    if (transport !== "p2p" && written?.p2p !== undefined) {
      return [{ path: `${path}.p2p`, message: 'has no effect unless transport is "p2p"' }]
    }
    return (written?.maxPlayers ?? 0) > maxPlayers
      ? [{ path: `${path}.maxPlayers`, message: `is capped to p2p.maxPlayers (${maxPlayers})` }]
      : []
  })

const ruleWarnings = ({ integrity, stats }: EnvironmentConfig): ReadonlyArray<Issue> => {
  const declared = new Set(stats.map(({ key }) => key))
  return integrity.stats.rules.flatMap(({ stat }, index) =>
    declared.has(stat)
      ? []
      : [
          {
            path: `integrity.stats.rules[${index}].stat`,
            message: `has no effect: stats declares no "${stat}"`
          }
        ]
  )
}

const webhookWarnings = ({ integrity }: EnvironmentConfig): ReadonlyArray<Issue> =>
  integrity.stats.webhook.url?.toLowerCase().startsWith("http:")
    ? [{ path: "integrity.stats.webhook.url", message: "http works in development only" }]
    : []

const tagWarnings = ({ share }: EnvironmentConfig, raw: Raw): ReadonlyArray<Issue> => {
  const { enabled, ...content } = raw.share?.tags ?? {}
  const noImage = share.tags.image === undefined && !share.images.enabled
  return [
    ...(enabled === undefined
      ? []
      : [
          {
            path: "share.tags.enabled",
            message: "is no longer used; the service adds no tags to pages"
          }
        ]),
    ...(Object.keys(content).length > 0 && noImage
      ? [
          {
            path: "share.tags",
            message: "card tags need an image: set tags.image, or images.enabled to true"
          }
        ]
      : [])
  ]
}

/** The warnings of a document that decoded to `config`. */
export const configWarnings = (
  config: EnvironmentConfig,
  document: unknown
): ReadonlyArray<Issue> => {
  const raw = isRaw(document) ? document : {}
  return [
    ...modeWarnings(config, raw),
    ...tagWarnings(config, raw),
    ...ruleWarnings(config),
    ...webhookWarnings(config)
  ]
}
