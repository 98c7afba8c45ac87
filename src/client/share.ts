/** Share links: making and posting them, and the link by which a page was opened. X profiles. */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"
import type { Core } from "./core.ts"
import { isError } from "./errors.ts"
import { inPath } from "./path-values.ts"
import type { Endpoints, Shared, ShareLink, XProfile, XProfiles } from "./wire.ts"

/** A link to make: by default a plain one without the player's name. */
export type NewShareLink = Partial<Endpoints["POST /v1/share/links"]["body"]>

export interface Share {
  /**
   * Makes a link to post, with a card image and a suggested text. A `score` makes it a challenge,
   * unless `kind` is `score`. `data` are texts of yours, up to 1 KiB, which those who open the link get.
   *
   * @example
   * const shared = await client.share.link({ score: 1500, showName: true, data: { room: room.code } })
   */
  link(link?: NewShareLink): Promise<Shared>

  /**
   * Opens the device's share sheet with the link, its text and, where the browser can, its picture.
   * Returns false if there is no share sheet, or the player closed it. Call it from a click.
   *
   * @example
   * if (!(await client.share.post(shared))) await navigator.clipboard.writeText(shared.link)
   */
  post(shared: Shared): Promise<boolean>

  /**
   * Returns the link by which the page was opened, and reports the visit, once for each client. Null
   * without a link. Outside of browsers, pass the address by which the app was opened.
   *
   * @example
   * const link = await client.share.opened()
   * if (link?.kind === "challenge") showChallenge(link.score, link.displayName)
   * if (link?.data?.room) await client.rooms.join(link.data.room)
   */
  opened(address?: string): Promise<ShareLink | null>

  /**
   * Reports that a play has started, if the page was opened by a link. Returns whether it was counted:
   * once for each player and day.
   *
   * @example
   * await client.share.played()
   */
  played(): Promise<boolean>

  /**
   * Returns the player's own X profile. Rejects with `identity_not_linked` for a player without X.
   *
   * @example
   * const { username, visible } = await client.share.xProfile()
   */
  xProfile(): Promise<XProfile>

  /**
   * Shows the X profile to other players, or hides it. That of a child stays hidden.
   *
   * @example
   * const { visible } = await client.share.showXProfile(true)
   */
  showXProfile(visible: boolean): Promise<XProfile>

  /**
   * Returns the X profiles of up to 100 players. Players who show none are absent.
   *
   * @example
   * const { [playerId]: profile } = await client.share.xProfiles([playerId])
   */
  xProfiles(playerIds: ReadonlyArray<string>): Promise<XProfiles["profiles"]>
}

/** Returns the picture as a file, if the browser can share files. */
const pictureOf = async ({ imageUrl }: Shared): Promise<ReadonlyArray<File>> => {
  if (imageUrl === null) return []
  try {
    const response = await fetch(imageUrl)
    if (!response.ok) return []
    const picture = await response.blob()
    const files = [new File([picture], "card.png", { type: "image/png" })]
    return navigator.canShare?.({ files }) ? files : []
  } catch {
    return []
  }
}

const post = async (shared: Shared): Promise<boolean> => {
  if (globalThis.navigator?.share === undefined) return false
  const files = await pictureOf(shared)
  const { post, link: url } = shared
  try {
    await navigator.share({
      url,
      ...(post.text === null ? {} : { text: post.text }),
      ...(files.length === 0 ? {} : { files: [...files] })
    })
    return true
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return false
    throw error
  }
}

/** Reports a visit: as the player, if one is signed in. False while the config counts none. */
const reportOf =
  ({ http, tokens }: Core) =>
  async (shareId: string, landed: boolean): Promise<boolean> => {
    const body = { shareId, landed }
    const send = (token?: string) => http.request("POST /v1/share/visits", { token, body })
    const session = await tokens.resume()
    try {
      return (await (session === undefined ? send() : authorized(tokens, send))).counted
    } catch (error) {
      if (isError(error, "share_tracking_disabled")) return false
      throw error
    }
  }

export const share: Module<Share> = (core) => {
  const { http, tokens } = core
  const report = reportOf(core)
  let landed: Promise<ShareLink | null> | undefined

  const land = async (address: string | undefined): Promise<ShareLink | null> => {
    const shareId = address === undefined ? null : new URL(address).searchParams.get("ks")
    if (shareId === null) return null
    try {
      const params = inPath({ shareId })
      const { link } = await http.request("GET /v1/share/links/{shareId}", { params })
      await report(shareId, true)
      return link
    } catch (error) {
      if (isError(error, "not_found")) return null
      throw error
    }
  }
  const opened = (address = globalThis.location?.href) =>
    (landed ??= land(address).catch((error: unknown) => {
      landed = undefined // the next call asks again
      throw error
    }))

  return {
    link: ({ kind, ...rest } = {}) => {
      const made = kind ?? (rest.score === undefined ? "plain" : "challenge")
      const body = { kind: made, ...rest }
      return authorized(tokens, (token) => http.request("POST /v1/share/links", { token, body }))
    },
    post,
    opened,
    played: async () => {
      const link = await opened()
      return link !== null && report(link.id, false)
    },
    xProfile: () =>
      authorized(tokens, (token) => http.request("GET /v1/players/me/x-profile", { token })),
    showXProfile: (visible) =>
      authorized(tokens, (token) =>
        http.request("PUT /v1/players/me/x-profile", { token, body: { visible } })
      ),
    xProfiles: async (playerIds) => {
      const query = { ids: playerIds.join(",") }
      return (await http.request("GET /v1/players/x-profiles", { query })).profiles
    }
  }
}
