/**
 * Share links, their visits, card images and card tags. A link is a post of a player, or a labelled
 * link of the developer. Its id is the query parameter `ks` of the landing address.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import {
  AnyKey,
  CallerRate,
  OptionalPlayerToken,
  PlayerRate,
  PlayerToken,
  PublishableKey,
  Requests
} from "../auth.ts"
import { NotFound, ShareImagesDisabled, ShareTagsDisabled, wire } from "../errors/codes.ts"
import { group } from "../feature.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "../mounts.ts"
import { operation, type OperationFacts } from "../operations.ts"
import { PageLimit } from "../pages.ts"
import { isDay, isStorable, nameUpTo, Timestamp } from "../text.ts"
import { ShareLinksGate, ShareStatsGate, ShareTrackingGate } from "./gates.ts"
import { share } from "./limits.ts"

export const ShareKind = Schema.Literals(["plain", "score", "challenge"])
export type ShareKind = typeof ShareKind.Type

/** The id of a link. */
export const ShareId = Schema.String.check(
  Schema.isPattern(new RegExp(`^[0-9A-Za-z]{${share.idCharacters}}$`), {
    message: `Expected the id of a link: ${share.idCharacters} letters and digits`
  })
)

/**
 * Data that the app gives to a link, such as the code of a room. It comes back when the link is opened and
 * never appears on the card.
 */
export const ShareData = Schema.Record(Schema.String, Schema.String)
  .annotate({
    identifier: "ShareData",
    description: "Texts by name: at most 1 KiB of JSON.",
    examples: [{ room: "7KMB2P" }]
  })
  .check(
    Schema.makeFilter((data) => {
      const size = new TextEncoder().encode(JSON.stringify(data)).length
      if (size > share.dataMaxBytes) {
        return `Expected at most ${share.dataMaxBytes} bytes of JSON, got ${size}`
      }
      const isSound = Object.entries(data).flat().every(isStorable)
      return isSound ? undefined : "Expected well-formed text without NUL"
    })
  )

/** Link to make. `score` and `challenge` need `score`, and `plain` refuses it. */
export const NewShareLink = Schema.Struct({
  kind: ShareKind,
  score: Schema.optionalKey(Schema.Finite),
  /** Show the player's name to those who open the link; never a child's. */
  showName: Schema.optionalKey(Schema.Boolean),
  data: Schema.optionalKey(ShareData)
}).check(
  Schema.makeFilter(({ kind, score }) => {
    if (kind === "plain" && score !== undefined) {
      return { path: ["score"], issue: "Expected no score in a plain link" }
    }
    return kind !== "plain" && score === undefined
      ? { path: ["score"], issue: `Expected a number in a ${kind} link` }
      : undefined
  })
)
export type NewShareLink = typeof NewShareLink.Type

/** Suggested text of a post; `text` and `via` are null where the config has none. */
export const PostHint = Schema.Struct({
  text: Schema.NullOr(Schema.String),
  hashtags: Schema.Array(Schema.String),
  via: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "PostHint",
  description: "Suggested text of a post. `text` and `via` are null where the config has none."
})

/** A link to post; `imageUrl` is null while `share.images` is off. */
const Shared = Schema.Struct({
  link: Schema.String,
  imageUrl: Schema.NullOr(Schema.String),
  post: PostHint
}).annotate({
  identifier: "Shared",
  description: "A link to post. `imageUrl` is null while `share.images` is off."
})

/**
 * A link as those who open it see it. `displayName` is null without consent, and for children and banned
 * players. `data` is what the app gave to it.
 */
export const ShareLink = Schema.Struct({
  id: Schema.String,
  kind: ShareKind,
  score: Schema.NullOr(Schema.Finite),
  displayName: Schema.NullOr(Schema.String),
  data: Schema.NullOr(ShareData),
  createdAt: Timestamp
}).annotate({
  identifier: "ShareLink",
  description:
    "A link as those who open it see it. `displayName` is null without consent, and for children and " +
    "banned players. `data` is what the app gave to it."
})
export type ShareLink = typeof ShareLink.Type

/** `landed`: a page was opened through the link. Otherwise a play started in that session. */
export const ShareVisit = Schema.Struct({ shareId: Schema.String, landed: Schema.Boolean })

const VisitCounted = Schema.Struct({ counted: Schema.Boolean }).annotate({
  identifier: "VisitCounted",
  description: "Whether the report was counted: each visitor counts once a day."
})

/** One `<meta>` element, with either `name` or `property`. */
export const ShareTag = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  property: Schema.optionalKey(Schema.String),
  content: Schema.String
})
export type ShareTag = typeof ShareTag.Type

/**
 * Tags for the head of a page, as HTML and as a list. `defaultImage` is the card without a link.
 * `shareImageTemplate` has the placeholder `{shareId}`; it is null while `share.images` is off.
 */
export const ShareTags = Schema.Struct({
  html: Schema.String,
  tags: Schema.Array(ShareTag),
  image: Schema.String,
  defaultImage: Schema.String,
  shareImageTemplate: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "ShareTags",
  description: "Meta tags for the head of a page, as HTML and as a list."
})
export type ShareTags = typeof ShareTags.Type

const TagsQuery = { ks: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(64))) }

const Png = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "image/png" }))

/** `/v1/share`, for pages and players. */
export class ShareApi extends group(
  "share",
  "games",
  "Share",
  "Links to post, their visits, card images and card tags."
)
  .add(
    HttpApiEndpoint.post("create", "/links", {
      payload: NewShareLink,
      success: Shared.pipe(HttpApiSchema.status(201)),
      error: wire(NotFound)
    })
      .middleware(ShareLinksGate)
      .annotate(PlayerRate, { limit: 60, seconds: 3600, name: "share" })
      .annotate(OpenApi.Summary, "Make a link to post, with a card image and a suggested text")
      .middleware(PlayerToken)
      .middleware(PublishableKey),
    HttpApiEndpoint.get("read", "/links/:shareId", {
      params: { shareId: Schema.String },
      success: Schema.Struct({ link: ShareLink }).annotate({
        identifier: "ShareLinkRead",
        description: "A share link."
      }),
      error: wire(NotFound)
    })
      .middleware(ShareLinksGate)
      .annotate(OpenApi.Summary, "Read the link by which a page was opened, to restore a challenge")
      .middleware(PublishableKey),
    HttpApiEndpoint.post("visit", "/visits", {
      payload: ShareVisit,
      success: VisitCounted,
      error: wire(NotFound)
    })
      .middleware(ShareTrackingGate)
      .annotate(OpenApi.Summary, "Report a visit or a play; each visitor counts once a day")
      .middleware(OptionalPlayerToken)
      .middleware(PublishableKey),
    HttpApiEndpoint.get("tags", "/tags", {
      query: TagsQuery,
      success: ShareTags,
      error: wire(ShareTagsDisabled)
    })
      .annotate(OpenApi.Summary, "Build the card tags for the head of a page")
      .middleware(AnyKey),
    HttpApiEndpoint.get("defaultImage", "/images/:label/card.png", {
      params: { label: Schema.String },
      success: Png,
      error: [wire(ShareImagesDisabled), wire(NotFound)]
    }).annotate(
      OpenApi.Summary,
      "Get the card image of an app; the label is the slug of its project, or <slug>--dev"
    ),
    HttpApiEndpoint.get("image", "/images/:label/:shareId.png", {
      params: { label: Schema.String, shareId: Schema.String },
      success: Png,
      error: [wire(ShareImagesDisabled), wire(NotFound)]
    }).annotate(OpenApi.Summary, "Get the card image of a link")
  )
  .prefix("/v1/share")
  .middleware(Requests) {}

// Operators ------------------------------------------------------------------------------------

/** A day in UTC, like `2026-11-20`, of years in which the days around it have four digits, too. */
const Day = Schema.String.check(
  Schema.makeFilter((day) =>
    isDay(day) && day >= "1970-01-01" && day < "9999-01-01"
      ? undefined
      : "Expected an existing day like 2026-11-20"
  )
)

const Counts = { visits: Schema.Int, newPlayers: Schema.Int, plays: Schema.Int }

/** Counts of a time range; `from` and `to` are days in UTC, both inclusive. */
export const ShareStats = Schema.Struct({
  from: Schema.String,
  to: Schema.String,
  totals: Schema.Struct(Counts),
  /** The links with the most visits. */
  links: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      label: Schema.NullOr(Schema.String),
      kind: ShareKind,
      ...Counts
    })
  ),
  days: Schema.Array(Schema.Struct({ date: Schema.String, ...Counts }))
}).annotate({
  identifier: "ShareStats",
  description: "Visits, new players and plays, by link and by day."
})
export type ShareStats = typeof ShareStats.Type

/** Link with its address `url`; `query` is the query parameter for an address of your own. */
export const LabelledLink = Schema.Struct({
  link: Schema.Struct({
    id: Schema.String,
    kind: Schema.Literal("plain"),
    label: Schema.String,
    createdAt: Timestamp
  }),
  url: Schema.String,
  query: Schema.String
}).annotate({
  identifier: "LabelledLink",
  description: "A labelled link, its address, and its query parameter."
})

/** The operations, for the audit log and agents. */
const operations = {
  stats: { tool: { name: "share_stats", effect: "reads" } },
  link: { audit: "share.link" }
} as const satisfies Record<string, OperationFacts>

const operators = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(
    id,
    "server",
    "Share statistics",
    "Counts of share links, labelled links and card tags."
  ).add(
    HttpApiEndpoint.get("stats", "/share/stats", {
      params,
      query: {
        from: Schema.optionalKey(Day),
        to: Schema.optionalKey(Day),
        shareId: Schema.optionalKey(ShareId),
        limit: Schema.optionalKey(PageLimit)
      },
      success: ShareStats
    })
      .middleware(ShareStatsGate)
      .annotateMerge(
        operation("Count visits, new players and plays, by link and by day", operations.stats)
      ),
    HttpApiEndpoint.post("link", "/share/links", {
      params,
      payload: Schema.Struct({ label: nameUpTo(share.labelMaxCharacters) }),
      success: LabelledLink.pipe(HttpApiSchema.status(201)),
      error: wire(NotFound)
    })
      .middleware(ShareLinksGate)
      .annotateMerge(operation("Make a labelled link, for example for a campaign", operations.link))
      .annotate(CallerRate, { limit: 300, seconds: 3600, name: "share", per: "environment" }),
    HttpApiEndpoint.get("tags", "/share/tags", {
      params,
      query: TagsQuery,
      success: ShareTags,
      error: wire(ShareTagsDisabled)
    }).annotate(OpenApi.Summary, "Build the card tags for the head of a page")
  )

/** `share/...`, for secret keys. */
export class AdminShareApi extends underKey(operators("adminShare", keyParams)) {}

/** The same for the developers of the project. */
export class ProjectShareApi extends underProject(operators("projectShare", projectParams)) {}
