/** Creates and reads share links. */
import { DateTime, Effect, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { ageBandOf, capabilitiesOf } from "#rpc/ages"
import type { PlayerCaller } from "#rpc/auth"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { NotFound } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import { type NewShareLink, ShareId, type ShareLink } from "#rpc/share/api"
import { share } from "#rpc/share/limits"
import { AppRepository } from "#sql/hosting/apps"
import { type FoundLink, type LinkRow, ShareLinkRepository } from "#sql/share/links"
import { Configs } from "../config/service.ts"
import { makeAddresses } from "./addresses.ts"
import { postText } from "./texts.ts"

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** Whether a text has the form of a link's id. */
export const isShareId = Schema.is(ShareId)

/** Returns the player's name, if the link shows it and the player is neither a child nor banned. */
export const shownName = (link: FoundLink, { audience }: EnvironmentConfig): string | null => {
  if (!link.showName || link.isBanned) return null
  const { showName } = capabilitiesOf(ageBandOf(audience, link.declaredAgeBand))
  return showName ? link.displayName : null
}

const viewOf = (link: FoundLink, config: EnvironmentConfig): ShareLink => ({
  id: link.id,
  kind: link.kind,
  score: link.score,
  displayName: shownName(link, config),
  data: link.data,
  createdAt: DateTime.formatIso(link.createdAt)
})

/** Stores a link under a new id. */
const makeInsert = Effect.gen(function* () {
  const links = yield* ShareLinkRepository
  const random = yield* SecureRandom.SecureRandom
  const freshId = Effect.gen(function* () {
    let id = ""
    while (id.length < share.idCharacters) {
      id += alphabet.charAt(yield* random.intBetween(0, alphabet.length - 1))
    }
    return id
  })
  return Effect.fnUntraced(function* (link: Omit<LinkRow, "id" | "createdAt">) {
    const createdAt = yield* DateTime.now
    for (;;) {
      const row = { ...link, id: yield* freshId, createdAt }
      const inserted = yield* links.insert(row)
      if (Option.isNone(inserted)) return yield* new NotFound()
      if (inserted.value) return row
    }
  })
})

/** Finds the environment with its project's name and slug, and its config. */
export const makeEnvironmentOf = Effect.gen(function* () {
  const configs = yield* Configs
  const apps = yield* AppRepository
  return Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    const { config } = yield* configs.current(environmentId)
    const environment = yield* apps.byId(environmentId)
    return { config, environment }
  })
})

/** Creates a player's link. */
export const makeCreate = Effect.gen(function* () {
  const addressesOf = yield* makeAddresses
  const environmentOf = yield* makeEnvironmentOf
  const insert = yield* makeInsert
  return Effect.fn("Share.create")(function* (
    { environmentId, playerId }: PlayerCaller,
    { data, kind, score, showName = false }: NewShareLink,
    languages: ReadonlyArray<string>
  ) {
    const { config, environment } = yield* environmentOf(environmentId)
    if (Option.isNone(environment)) return yield* new NotFound()
    const stored = { environmentId, playerId, kind, score: score ?? null, showName, label: null }
    const { id } = yield* insert({ ...stored, data: data ?? null })
    const addresses = yield* addressesOf(environment.value, config)
    const { images, links } = config.share
    return {
      link: addresses.link(id),
      imageUrl: images.enabled ? addresses.image(id) : null,
      post: {
        text: postText(links.text, stored.score, languages),
        hashtags: links.hashtags,
        via: links.via ?? null
      }
    }
  })
})

/** Creates a labelled link of the developer. */
export const makeLabelled = Effect.gen(function* () {
  const addressesOf = yield* makeAddresses
  const environmentOf = yield* makeEnvironmentOf
  const insert = yield* makeInsert
  return Effect.fn("Share.labelled")(function* (environmentId: EnvironmentId, label: string) {
    const { config, environment } = yield* environmentOf(environmentId)
    if (Option.isNone(environment)) return yield* new NotFound()
    const kind = "plain"
    const stored = {
      environmentId,
      playerId: null,
      kind,
      score: null,
      showName: false,
      data: null,
      label
    } as const
    const { createdAt, id } = yield* insert(stored)
    return {
      link: { id, kind, label, createdAt: DateTime.formatIso(createdAt) } as const,
      url: (yield* addressesOf(environment.value, config)).link(id),
      query: `ks=${id}`
    }
  })
})

/** Finds a link of the environment. Treats text without the form of an id as an unknown link. */
export const makeFind = Effect.gen(function* () {
  const links = yield* ShareLinkRepository
  return (environmentId: EnvironmentId, id: string) =>
    isShareId(id)
      ? Effect.flatMap(DateTime.now, (now) => links.find({ environmentId, id, now }))
      : Effect.succeedNone
})

/** Reads a link for its visitors. */
export const makeRead = Effect.gen(function* () {
  const configs = yield* Configs
  const find = yield* makeFind
  return Effect.fn("Share.read")(function* (environmentId: EnvironmentId, id: string) {
    const { config } = yield* configs.current(environmentId)
    const link = yield* find(environmentId, id)
    return Option.isNone(link) ? yield* new NotFound() : { link: viewOf(link.value, config) }
  })
})
