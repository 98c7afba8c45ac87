/**
 * Warnings about a valid config document: settings without effect, and settings that the service
 * changes. The push still succeeds, and its response lists them.
 */
import { Schema } from "effect"
import type { Issue } from "../errors/codes.ts"
import { EnvironmentConfig } from "./document.ts"

const Raw = Schema.toEncoded(EnvironmentConfig)
type Raw = typeof Raw.Type
const isRaw = Schema.is(Raw)

const warnIf = (applies: boolean, path: string, message: string): ReadonlyArray<Issue> =>
  applies ? [{ path, message }] : []

const modeWarnings = ({ multiplayer }: EnvironmentConfig, raw: Raw): ReadonlyArray<Issue> =>
  multiplayer.modes.flatMap(({ authority, maxPlayers, teams, transport }, index) => {
    const path = `multiplayer.modes[${index}]`
    const written = raw.multiplayer?.modes?.[index]
    const unused = transport !== "p2p" && written?.p2p !== undefined
    const capped = (written?.maxPlayers ?? 0) > maxPlayers
    const teamless = teams.length === 0
    const needsTeams = "has no effect: add teams, or remove it"
    const powers = (["host", "matchedHost"] as const).flatMap((list) =>
      warnIf(
        teamless && authority[list].includes("team"),
        `${path}.authority.${list}`,
        `"team" ${needsTeams}`
      )
    )
    return [
      ...powers,
      ...warnIf(teamless && written?.assign !== undefined, `${path}.assign`, needsTeams),
      ...warnIf(unused, `${path}.p2p`, 'has no effect: remove it, or set transport to "p2p"'),
      ...warnIf(
        capped,
        `${path}.maxPlayers`,
        `is capped to p2p.maxPlayers (${maxPlayers}): lower it, or raise p2p.maxPlayers`
      )
    ]
  })

const tagWarnings = (raw: Raw): ReadonlyArray<Issue> =>
  warnIf(
    raw.share?.tags?.enabled !== undefined,
    "share.tags.enabled",
    "is no longer used: remove it; the service adds no tags to pages"
  )

const ruleWarnings = ({ integrity, stats }: EnvironmentConfig): ReadonlyArray<Issue> => {
  const { rules } = integrity.stats
  const declared = new Set(stats.map(({ key }) => key))
  return rules.flatMap(({ max, min, stat }, index) => {
    const path = `integrity.stats.rules[${index}]`
    const first = rules.findIndex((rule) => rule.stat === stat)
    return [
      ...warnIf(
        !declared.has(stat),
        `${path}.stat`,
        `has no effect: add "${stat}" to stats, or remove the rule`
      ),
      ...warnIf(
        min === undefined && max === undefined,
        path,
        "has no effect: add min or max, or remove the rule"
      ),
      ...warnIf(
        first < index,
        `${path}.stat`,
        `integrity.stats.rules[${first}] is for "${stat}" too and both apply: merge them`
      )
    ]
  })
}

const webhookWarnings = ({ integrity }: EnvironmentConfig, raw: Raw): ReadonlyArray<Issue> => {
  const { webhook } = integrity.stats
  const written = raw.integrity?.stats?.webhook
  return [
    ...warnIf(
      webhook.url === undefined && Object.keys(written ?? {}).length > 0,
      "integrity.stats.webhook",
      "has no effect without a url: add webhook.url, or remove webhook"
    ),
    ...warnIf(
      webhook.url?.toLowerCase().startsWith("http:") === true,
      "integrity.stats.webhook.url",
      "works in development only: use an https URL in production"
    )
  ]
}

/** Returns the warnings of a document that decoded to `config`. */
export const configWarnings = (
  config: EnvironmentConfig,
  document: unknown
): ReadonlyArray<Issue> => {
  const raw = isRaw(document) ? document : {}
  return [
    ...modeWarnings(config, raw),
    ...tagWarnings(raw),
    ...ruleWarnings(config),
    ...webhookWarnings(config, raw)
  ]
}
