/**
 * Rules of the config document that concern several fields, several entries of a list or the
 * environment. They read the raw document, so their issues come together with those of single fields: a
 * rule whose own fields are invalid is skipped. Only pushes check them; a stored document that a later
 * rule refuses stays in force.
 */
import { Option, Predicate, Schema } from "effect"
import type { Issue } from "../errors/codes.ts"
import { featureDependencies } from "./features.ts"
import { configLimits } from "./limits.ts"
import { ModeFields } from "./multiplayer.ts"
import { isLoopback } from "./origins.ts"
import { duplicateKeys, entries, issueIf, lengthIssues, members, type Members } from "./raw.ts"
import { rightsIssues } from "./rights-rules.ts"
import { shownTextIssues } from "./shown-texts.ts"

const featureIssues = (features: Members): ReadonlyArray<Issue> =>
  featureDependencies.flatMap(([name, other]) =>
    issueIf(
      features[name] === true && (features[other] === undefined || features[other] === false),
      `features.${name}`,
      `needs features.${other}: set it to true as well`
    )
  )

const { maxPlayers, minPlayers, p2p, transport } = ModeFields.fields
const decodePlayerLimits = Schema.decodeUnknownOption(Schema.Struct({ maxPlayers, minPlayers }))
const decodeMesh = Schema.decodeUnknownOption(Schema.Struct({ minPlayers, p2p, transport }))

const modeIssues = (mode: unknown, index: number): ReadonlyArray<Issue> => {
  if (!Predicate.isObject(mode)) return []
  const path = `multiplayer.modes[${index}]`
  const limits = Option.match(decodePlayerLimits(mode), {
    onNone: () => [],
    onSome: (it) =>
      issueIf(
        it.maxPlayers < it.minPlayers,
        `${path}.maxPlayers`,
        `must be >= minPlayers (${it.minPlayers})`
      )
  })
  const mesh = Option.match(decodeMesh(mode), {
    onNone: () => [],
    onSome: (it) =>
      issueIf(
        it.transport === "p2p" && it.minPlayers > it.p2p.maxPlayers,
        `${path}.minPlayers`,
        `must be <= p2p.maxPlayers (${it.p2p.maxPlayers})`
      )
  })
  return [...limits, ...mesh, ...rightsIssues(mode, path)]
}

/** Settings of card tags that need an image; `image` and the unused `enabled` do not. */
const tagTexts = ["title", "description", "imageAlt", "site"]

const shareIssues = (share: Members): ReadonlyArray<Issue> => {
  const tags = members(share["tags"])
  const hasImage = tags["image"] !== undefined || members(share["images"])["enabled"] === true
  return issueIf(
    !hasImage && tagTexts.some((name) => tags[name] !== undefined),
    "share.tags",
    "card tags need an image: set tags.image, or images.enabled to true"
  )
}

const rangeIssues = (rule: unknown, index: number): ReadonlyArray<Issue> => {
  const { max, min } = members(rule)
  return typeof min === "number" && typeof max === "number"
    ? issueIf(max < min, `integrity.stats.rules[${index}].max`, `must be >= min (${min})`)
    : []
}

const webhookIssues = (url: unknown, production: boolean): ReadonlyArray<Issue> => {
  const parsed = typeof url === "string" ? URL.parse(url) : null
  return issueIf(
    production && parsed?.protocol === "http:" && isLoopback(parsed.hostname),
    "integrity.stats.webhook.url",
    "must be an https URL in production: http://localhost works in development only"
  )
}

/** Returns the issues of a raw document. */
export const ruleIssues = (document: unknown, production: boolean): ReadonlyArray<Issue> => {
  const { auth, features, integrity, multiplayer, share, stats, web } = members(document)
  const { modes } = members(multiplayer)
  const { allowedOrigins } = members(web)
  const { redirectUrls } = members(auth)
  const { rules, webhook } = members(members(integrity)["stats"])
  const { hashtags } = members(members(share)["links"])
  return [
    ...featureIssues(members(features)),
    ...lengthIssues(stats, "stats", configLimits.statsMax),
    ...duplicateKeys(stats, "stats"),
    ...lengthIssues(modes, "multiplayer.modes", configLimits.modesMax),
    ...duplicateKeys(modes, "multiplayer.modes"),
    ...entries(modes).flatMap(modeIssues),
    ...lengthIssues(redirectUrls, "auth.redirectUrls", configLimits.redirectUrlsMax),
    ...lengthIssues(allowedOrigins, "web.allowedOrigins", configLimits.allowedOriginsMax),
    ...lengthIssues(hashtags, "share.links.hashtags", configLimits.hashtagsMax),
    ...shareIssues(members(share)),
    ...lengthIssues(rules, "integrity.stats.rules", configLimits.integrityRulesMax),
    ...entries(rules).flatMap(rangeIssues),
    ...webhookIssues(members(webhook)["url"], production),
    ...shownTextIssues(document)
  ]
}
