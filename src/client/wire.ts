/** Types of the wire, generated from the definitions in `rpc/` by `npm run generate`. */

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>

export type Provider = "google" | "discord" | "apple" | "x"

export type Method = "email" | "google" | "discord" | "apple" | "x"

export type NativeProvider = "apple" | "google"

export interface NativeRequest {
  readonly idToken: string
  readonly nonce: string
  readonly platform: "ios" | "android" | "web"
  readonly link?: boolean
  readonly name?: string
  readonly authorizationCode?: string
}

export type SignInMode = "popup" | "redirect"

export type SignInError =
  | "access_denied"
  | "provider_error"
  | "provider_not_configured"
  | "identity_already_linked"
  | "player_banned"
  | "expired"

export type AgeBand = "child" | "teen" | "adult"

export interface AgeSignal {
  readonly platform: "ios" | "android" | "web"
  readonly status:
    | "declared"
    | "verified"
    | "supervised"
    | "supervised_pending"
    | "supervised_denied"
    | "declined"
    | "unknown"
  readonly lowerBound?: number
  readonly upperBound?: number
  readonly source?: "selfDeclared" | "guardianDeclared" | "platform"
  readonly supervised?: boolean
}

export type SignalKind = "offer" | "answer" | "candidate" | "restart"

export type VoteOp = "kick" | "restart" | "surrender"

export type RoomModerateOp = "kick" | "ban" | "unban" | "host" | "team" | "mute" | "unmute"

export interface RoomTeam {
  readonly key: string
  readonly players: ReadonlyArray<string>
}

/** A time in ISO 8601, in UTC. */
export type Timestamp = string

export interface OpenVote {
  readonly voteId: string
  readonly op: VoteOp
  readonly playerId?: string
  readonly yes: number
  readonly no: number
  readonly needed: number
  readonly endsAt: Timestamp
}

export interface RoomRef {
  readonly roomId: string
  readonly code: string
}

export interface RoomPlayer {
  readonly id: string
  readonly displayName: string
  readonly connected: boolean
  readonly joinedAt: Timestamp
  readonly state: JsonObject
  readonly muted?: true
}

export interface RoomSnapshot {
  readonly id: string
  readonly code: string
  readonly mode: string
  readonly private: boolean
  readonly locked: boolean
  readonly transport: "server" | "p2p"
  readonly hostId: string | null
  readonly hostOnlyState: boolean
  readonly maxPlayers: number
  readonly metadata: JsonObject
  readonly state: JsonObject
  readonly version: number
  readonly createdAt: Timestamp
  readonly players: ReadonlyArray<RoomPlayer>
  readonly p2p?: {
    readonly relayOnly: boolean
    readonly maxPlayers: number
  }
  readonly teams?: ReadonlyArray<RoomTeam>
  readonly vote?: OpenVote
}

export type RoomEvent =
  | {
    readonly t: "room_joined"
    readonly room: RoomSnapshot
    readonly playerId: string
    readonly resumed: boolean
  }
  | {
    readonly t: "player_joined"
    readonly player: RoomPlayer
  }
  | {
    readonly t: "player_left"
    readonly playerId: string
    readonly reason: "left" | "timeout" | "banned" | "deleted" | "kicked"
  }
  | {
    readonly t: "player_disconnected"
    readonly playerId: string
    readonly graceUntil: Timestamp
  }
  | {
    readonly t: "player_reconnected"
    readonly playerId: string
  }
  | {
    readonly t: "player_updated"
    readonly player: {
      readonly id: string
      readonly displayName: string
    }
  }
  | {
    readonly t: "host_changed"
    readonly hostId: string
    readonly previousHostId: string | null
    readonly reason: "left" | "timeout" | "banned" | "deleted" | "kicked" | "transferred"
  }
  | {
    readonly t: "state"
    readonly patch: JsonObject
    readonly from: string
    readonly version: number
  }
  | {
    readonly t: "player_state"
    readonly playerId: string
    readonly patch: JsonObject
  }
  | {
    readonly t: "message"
    readonly from: string
    readonly type: string
    readonly data?: unknown
    readonly at: number
  }
  | {
    readonly t: "locked"
    readonly locked: boolean
  }
  | {
    readonly t: "signal"
    readonly from: string
    readonly kind: SignalKind
    readonly data?: unknown
    readonly gen?: number
  }
  | {
    readonly t: "removed"
    readonly roomId: string
    readonly reason: "kicked" | "banned" | "voted"
    readonly until: Timestamp | null
    readonly cause?: string
  }
  | {
    readonly t: "vote"
    readonly voteId: string
    readonly op: VoteOp
    readonly playerId?: string
    readonly yes: number
    readonly no: number
    readonly needed: number
    readonly endsAt: Timestamp
    readonly state: "open" | "passed" | "failed" | "cancelled"
  }
  | {
    readonly t: "muted"
    readonly playerId: string
    readonly muted: boolean
  }
  | {
    readonly t: "teams"
    readonly teams: ReadonlyArray<RoomTeam>
    readonly version: number
  }
  | {
    readonly t: "room_closed"
    readonly roomId: string
    readonly reason: "empty" | "idle" | "feature_disabled" | "lost"
  }

export interface ChannelVoice {
  readonly mode: "p2p" | "sfu"
  readonly relayOnly: boolean
}

export interface ChannelPlayer {
  readonly id: string
  readonly displayName: string
  readonly joinedAt: Timestamp
}

export interface ChannelSettings {
  readonly name: string
  readonly managed: boolean
  readonly ownerId: string | null
  readonly join: "anyone" | "invited"
  readonly send: "anyone" | "speakers" | "server"
  readonly open: boolean
  readonly maxMembers: number
  readonly voice: ChannelVoice | null
  readonly createdAt: Timestamp
}

export type ModerateOp =
  | "invite"
  | "uninvite"
  | "allowSend"
  | "disallowSend"
  | "mute"
  | "unmute"
  | "kick"
  | "ban"
  | "unban"

/** Id of a player. */
export type PlayerId = string

export interface Moderation {
  readonly op: ModerateOp
  readonly playerId: PlayerId
  readonly seconds?: number
}

export type ChannelEvent =
  | {
    readonly t: "channel_joined"
    readonly channel: ChannelSettings
    readonly members: ReadonlyArray<ChannelPlayer>
    readonly voice: ChannelVoice | null
    readonly canSend: boolean
    readonly mutedUntil: string | null
  }
  | {
    readonly t: "channel_message"
    readonly channel: string
    readonly from: string
    readonly type: string
    readonly data?: unknown
    readonly at: number
  }
  | {
    readonly t: "channel_player_joined"
    readonly channel: string
    readonly player: ChannelPlayer
  }
  | {
    readonly t: "channel_player_left"
    readonly channel: string
    readonly playerId: string
    readonly reason: "left" | "timeout" | "kicked" | "banned" | "deleted"
  }
  | {
    readonly t: "channel_players"
    readonly channel: string
    readonly joined: ReadonlyArray<ChannelPlayer>
    readonly left: ReadonlyArray<{
      readonly playerId: string
      readonly reason: "left" | "timeout" | "kicked" | "banned" | "deleted"
    }>
  }
  | {
    readonly t: "player_updated"
    readonly channel: string
    readonly player: {
      readonly id: string
      readonly displayName: string
    }
  }
  | {
    readonly t: "channel_changed"
    readonly channel: ChannelSettings
  }
  | {
    readonly t: "channel_self"
    readonly channel: string
    readonly canSend: boolean
    readonly mutedUntil: string | null
  }
  | {
    readonly t: "channel_closed"
    readonly channel: string
    readonly reason: "deleted" | "empty" | "kicked" | "banned" | "feature_disabled" | "lost"
  }

export interface VoiceMember {
  readonly id: string
  readonly session: string
  readonly canSpeak: boolean
  readonly publishing: boolean
}

export type VoiceEvent =
  | {
    readonly t: "voice_state"
    readonly channel: string
    readonly members: ReadonlyArray<VoiceMember>
  }
  | {
    readonly t: "voice_signal"
    readonly channel: string
    readonly from: string
    readonly kind: SignalKind
    readonly data?: unknown
    readonly gen?: number
  }
  | {
    readonly t: "voice_sfu_offer"
    readonly channel: string
    readonly session: string
    readonly gen: number
    readonly sdp: string
    readonly publishMid: string
    readonly slots: ReadonlyArray<string>
  }
  | {
    readonly t: "voice_speaking"
    readonly channel: string
    readonly slots: Readonly<Record<string, string | null>>
  }
  | {
    readonly t: "voice_closed"
    readonly channel: string
    readonly reason: "time_limit" | "suspended" | "unavailable"
    readonly retryAfterMs?: number
  }

export type IceTransportPolicy = "relay" | "all"

export interface IceServer {
  readonly urls: ReadonlyArray<string>
  readonly username?: string
  readonly credential?: string
}

export interface IceServers {
  readonly iceServers: ReadonlyArray<IceServer>
  readonly iceTransportPolicy: IceTransportPolicy
  readonly expiresAt: Timestamp
}

export interface HeldSeat {
  readonly roomId: string
  readonly code: string
  readonly mode: string
  readonly graceUntil: Timestamp
}

export interface Welcome {
  readonly t: "welcome"
  readonly connectionId: string
  readonly playerId: string | null
  readonly serverTime: number
  readonly heartbeatSeconds: number
  readonly tokenExpiresAt: Timestamp | null
  readonly rooms: ReadonlyArray<HeldSeat>
}

export interface Warn {
  readonly t: "warn"
  readonly code: string
  readonly message: string
  readonly details?: unknown
}

/** Body of: Create a guest player and sign it in. */
export interface SessionsGuestRequest {
  readonly displayName?: string
}

export interface Session {
  readonly player: Player
  readonly accessToken: string
  readonly expiresIn: number
  readonly refreshToken: string
}

/** A player as its own client sees it. */
export interface Player {
  readonly id: PlayerId
  readonly displayName: string
  readonly isGuest: boolean
  readonly createdAt: Timestamp
  readonly identities: ReadonlyArray<Identity>
  readonly emailVerified: boolean
}

/** A sign-in method. A guest has the single entry `guest`. */
export interface Identity {
  readonly provider: string
}

/** Body of: Rotate the refresh token. */
export interface SessionsRefreshRequest {
  readonly refreshToken: string
}

/** Body of: Create a player with an email and a password and sign it in. */
export interface EmailSignupRequest {
  readonly email: string
  readonly password: string
  readonly displayName?: string
  readonly redirectUrl?: string
}

/** Body of: Sign in with an email and a password. */
export interface EmailLoginRequest {
  readonly email: string
  readonly password: string
}

/** Body of: Confirm an email with the token of a verification link. */
export interface EmailVerifyRequest {
  readonly token: string
}

/** The signed-in player. */
export interface PlayerResponse {
  readonly player: Player
}

/** Body of: Send a reset link if the account exists. */
export interface EmailForgotRequest {
  readonly email: string
  readonly redirectUrl?: string
}

/** Body of: Set a password with the token of a reset link; ends all sessions. */
export interface EmailResetRequest {
  readonly token: string
  readonly password: string
}

/** Body of: Add an email and a password; a guest becomes permanent. */
export interface PlayerEmailLinkRequest {
  readonly email: string
  readonly password: string
  readonly redirectUrl?: string
}

/** Body of: Send the verification link again, unless the email is confirmed. */
export interface PlayerEmailResendRequest {
  readonly redirectUrl?: string
}

/** Body of: Change the password; every other device is signed out. */
export interface PlayerEmailChangeRequest {
  readonly currentPassword: string
  readonly newPassword: string
  readonly refreshToken: string
}

/** The public part of the environment's config. */
export interface Definitions {
  readonly configVersion: number
  readonly resetTimeZone: string
  /** Every feature is off until its switch is true. */
  readonly features: {
    readonly emailLogin: boolean
    /** Saves of each player as JSON, on every device that the player signs in on. */
    readonly saves: boolean
    readonly stats: boolean
    /** Rooms with shared state, matchmaking, and the realtime WebSocket. */
    readonly multiplayer: boolean
    readonly realtimeChannels: boolean
    /** Voice calls in channels created with voice. Needs realtimeChannels. */
    readonly voice: boolean
    readonly hosting: boolean
    /** Value rules and the verification webhook in integrity.stats. Needs stats. */
    readonly statsVerification: boolean
  }
  readonly stats: ReadonlyArray<{
    readonly key: string
    /** Display text: one text, or one per language code. */
    readonly title?: string | JsonObject
    readonly aggregation: "sum" | "max" | "min" | "latest"
  }>
  readonly modes: ReadonlyArray<{
    readonly key: string
    /** Display text: one text, or one per language code. */
    readonly title?: string | JsonObject
    readonly minPlayers: number
    readonly maxPlayers: number
    readonly fillTimeoutSeconds: number
    readonly transport: "server" | "p2p"
    readonly p2p?: {
      readonly maxPlayers: number
      readonly relayOnly: boolean
    }
    readonly authority?: {
      readonly host: ReadonlyArray<"kick" | "ban" | "mute" | "team" | "transfer">
      readonly matchedHost: ReadonlyArray<"kick" | "ban" | "mute" | "team" | "transfer">
      readonly votes: ReadonlyArray<{
        readonly op: VoteOp
        readonly share: number
        readonly minVoters: number
        readonly seconds: number
        readonly cooldownSeconds: number
      }>
    }
    readonly teams?: ReadonlyArray<{
      readonly key: string
      /** Display text: one text, or one per language code. */
      readonly title?: string | JsonObject
      readonly min: number
      readonly max: number
    }>
    readonly assign?: "auto" | "match" | "free" | "host"
  }>
  readonly providers: ReadonlyArray<string>
  readonly share: {
    readonly images: boolean
    readonly links: boolean
    readonly tracking: boolean
    readonly inAppBrowser: boolean
  }
  readonly audience: "general" | "mixed" | "kids"
  readonly news: {
    readonly optIn: boolean
  }
}

export interface OauthStartRequest {
  readonly redirectUrl: string
  readonly challenge: string
  readonly mode?: SignInMode
}

/** The address at which the player signs in with the provider. */
export interface ProviderUrl {
  readonly url: string
}

/** Body of: Exchange a sign-in code for a session, once, within a minute. */
export interface OauthExchangeRequest {
  readonly code: string
  readonly verifier: string
}

export interface ProviderSession {
  readonly player: Player
  readonly accessToken: string
  readonly expiresIn: number
  readonly refreshToken: string
  readonly provider: Provider
  readonly linked: boolean
}

/** Body of: Sign in or link with the id token of a native app. */
export interface OauthNativeRequest {
  readonly idToken: string
  readonly nonce: string
  readonly platform: "ios" | "android" | "web"
  readonly link?: boolean
  readonly name?: string
  readonly authorizationCode?: string
}

/** A code that signs the player in on another device. `expiresIn` is in seconds. */
export interface TransferCode {
  readonly code: string
  readonly expiresIn: number
}

/** Body of: Sign in as the player who issued a code. */
export interface TransferRedeemRequest {
  /** A code as a person types it: case, width, spaces and dashes do not matter. */
  readonly code: string
}

/** Body of: Rename the signed-in player. */
export interface PlayersUpdateRequest {
  readonly displayName: string
}

/** Body of: Delete the player and everything that is stored about it. */
export interface PlayerDataDeleteRequest {
  readonly password?: string
  readonly refreshToken?: string
}

/** It is deleted. */
export interface Deleted {
  readonly deleted: true
}

/** The sign-in methods of the player. */
export interface LinkedIdentityList {
  readonly identities: ReadonlyArray<LinkedIdentity>
}

/** A sign-in method as its player sees it. */
export interface LinkedIdentity {
  readonly provider: Method
  readonly email?: string
  readonly emailVerified?: boolean
  readonly username?: string
  readonly linkedAt: Timestamp
}

/** Body of: Report the platform's age signal; it only makes the age band stricter. */
export interface AgesSignalRequest {
  readonly platform: "ios" | "android" | "web"
  readonly status:
    | "declared"
    | "verified"
    | "supervised"
    | "supervised_pending"
    | "supervised_denied"
    | "declined"
    | "unknown"
  readonly lowerBound?: number
  readonly upperBound?: number
  readonly source?: "selfDeclared" | "guardianDeclared" | "platform"
  readonly supervised?: boolean
}

/** The effective age band of a player, and the declared one. */
export interface AgeProfile {
  readonly ageBand: AgeBand
  readonly declaredAgeBand: AgeBand | null
  readonly capabilities: Capabilities
}

/** What players of an age band may do. */
export interface Capabilities {
  readonly directConnections: boolean
  readonly voice: boolean
  readonly openChat: boolean
  readonly showName: boolean
  readonly news: boolean
}

/** Body of: Declare the age band; later declarations must be stricter. */
export interface AgesDeclareRequest {
  readonly band: AgeBand
}

/** A page of the player's blocks, newest first. */
export interface BlockList {
  readonly blocks: ReadonlyArray<Block>
  readonly nextCursor: string | null
}

/** A player whom the signed-in player has blocked. */
export interface Block {
  readonly player: {
    readonly id: PlayerId
    readonly displayName: string
  }
  readonly createdAt: Timestamp
}

/** It is done. The answer is the same for a player who does not exist. */
export type BlockChanged = unknown

/** Whether sign-up screens may offer the opt-in. */
export interface NewsOffer {
  readonly enabled: boolean
}

export interface NewsChooseRequest {
  readonly optIn: boolean
}

/** The player's choice. */
export interface NewsChoice {
  readonly enabled: boolean
  readonly optIn: boolean
}

/** The player's bans, newest first. */
export interface SanctionList {
  readonly sanctions: ReadonlyArray<Sanction>
}

export interface Sanction {
  readonly id: SanctionId
  readonly kind: "ban"
  readonly active: boolean
  readonly note: string | null
  readonly createdAt: Timestamp
  readonly expiresAt: Timestamp | null
  readonly liftedAt: Timestamp | null
  readonly appeal?: {
    readonly status: "open" | "accepted" | "rejected"
    readonly message: string
    readonly createdAt: Timestamp
    readonly response: string | null
  }
}

/** Id of a ban. */
export type SanctionId = string

/** Body of: Appeal against a ban. */
export interface SanctionsAppealRequest {
  readonly message: string
}

/** The ban with its appeal. */
export interface Appealed {
  readonly sanction: Sanction
}

/** Body of: Appeal with the refresh token that the ban has revoked. */
export interface AppealsAppealRequest {
  readonly refreshToken: string
  readonly sanctionId?: string
  readonly message: string
}

/** Public, unlocked rooms with a free seat, newest first. */
export interface PublicRoomList {
  readonly rooms: ReadonlyArray<PublicRoom>
}

/** An open room. `players` is a count. */
export interface PublicRoom {
  readonly id: string
  readonly code: string
  readonly mode: string
  readonly players: number
  readonly maxPlayers: number
  readonly metadata: JsonObject
  readonly createdAt: Timestamp
}

/** The player's saves, newest first. */
export interface SaveList {
  readonly saves: ReadonlyArray<SaveItem>
}

/** A save without its data. `size` is the bytes of `data` in UTF-8. */
export interface SaveItem {
  readonly key: string
  readonly version: number
  readonly size: number
  readonly updatedAt: Timestamp
}

/** A save with its data. */
export interface Save {
  readonly key: string
  readonly version: number
  readonly size: number
  readonly updatedAt: Timestamp
  readonly data: unknown
}

/** Body of: Write a save, optionally only if its version is unchanged. */
export interface SavesWriteRequest {
  readonly data: unknown
  readonly ifVersion?: number
}

/** All-time values. A stat that was never reported is absent. */
export interface StatsRead {
  readonly stats: Readonly<Record<string, number>>
}

/** Body of: Report stats. */
export interface StatsReportRequest {
  readonly stats: Readonly<Record<string, number>>
}

export interface StatsReported {
  readonly stats: Readonly<Record<string, PeriodValues>>
  readonly rejected: ReadonlyArray<Rejection>
  readonly unlocked: ReadonlyArray<{
    readonly key: string
    readonly unlockedAt: Timestamp
  }>
}

/** A stat's value for all time, today, this week (from Monday) and this month. */
export interface PeriodValues {
  readonly all: number
  readonly daily: number
  readonly weekly: number
  readonly monthly: number
}

/** A value that was not stored, and why. */
export interface Rejection {
  readonly stat: string
  readonly value: number
  readonly reason:
    | "unknown_stat"
    | "above_max_per_submit"
    | "below_min"
    | "above_max"
    | "overflow"
    | "verification_rejected"
    | "verification_unavailable"
}

/** Body of: Make a link to post, with a card image and a suggested text. */
export interface ShareCreateRequest {
  readonly kind: "plain" | "score" | "challenge"
  readonly score?: number
  readonly showName?: boolean
  /** Texts by name: at most 1 KiB of JSON. */
  readonly data?: Readonly<Record<string, string>>
}

/** A link to post. `imageUrl` is null while `share.images` is off. */
export interface Shared {
  readonly link: string
  readonly imageUrl: string | null
  readonly post: PostHint
}

/** Suggested text of a post. `text` and `via` are null where the config has none. */
export interface PostHint {
  readonly text: string | null
  readonly hashtags: ReadonlyArray<string>
  readonly via: string | null
}

/** A share link. */
export interface ShareLinkRead {
  readonly link: ShareLink
}

export interface ShareLink {
  readonly id: string
  readonly kind: "plain" | "score" | "challenge"
  readonly score: number | null
  readonly displayName: string | null
  readonly data: Readonly<Record<string, string>> | null
  readonly createdAt: Timestamp
}

/** Body of: Report a visit or a play; each visitor counts once a day. */
export interface ShareVisitRequest {
  readonly shareId: string
  readonly landed: boolean
}

/** Whether the report was counted: each visitor counts once a day. */
export interface VisitCounted {
  readonly counted: boolean
}

/** The player's own X profile, and whether other players see it. */
export interface XProfile {
  readonly username: string | null
  readonly name: string | null
  readonly avatarUrl: string | null
  readonly visible: boolean
}

/** Body of: Show the X profile to other players, or hide it. */
export interface XProfilesShowRequest {
  readonly visible: boolean
}

/** X profiles by player id; those of players who show none are absent. */
export interface XProfiles {
  readonly profiles: Readonly<Record<string, {
    readonly username: string | null
    readonly name: string | null
    readonly avatarUrl: string | null
  }>>
}

/** Everything that is stored about a player. */
export interface PlayerExport {
  readonly exportedAt: Timestamp
  readonly sessions: ReadonlyArray<{
    readonly id: string
    readonly createdAt: Timestamp
    readonly lastUsedAt: Timestamp
    readonly userAgent: null
  }>
  readonly days: ReadonlyArray<string>
  readonly player: Player
  readonly lastSeenAt: Timestamp | null
  readonly identities: ReadonlyArray<{
    readonly provider: Method
    readonly email?: string
    readonly emailVerified?: boolean
    readonly username?: string
    readonly linkedAt: Timestamp
    readonly subject: string
  }>
  readonly age: {
    readonly ageBand: AgeBand
    readonly declaredAgeBand: AgeBand | null
    readonly capabilities: Capabilities
    readonly signalledAgeBand: AgeBand | null
  }
  readonly blocks: ReadonlyArray<Block>
  readonly news:
    | {
      readonly optIn: boolean
      readonly chosenAt: Timestamp
    }
    | null
  readonly sanctions: ReadonlyArray<Sanction>
  readonly appeals: ReadonlyArray<{
    readonly sanctionId: SanctionId
    readonly status: "open" | "accepted" | "rejected"
    readonly message: string
    readonly createdAt: Timestamp
    readonly response: string | null
  }>
  readonly rooms: ReadonlyArray<string>
  readonly channels: ReadonlyArray<string>
  readonly saves: ReadonlyArray<Save>
  readonly stats: Readonly<Record<string, number>>
  readonly rejectedStats: ReadonlyArray<{
    readonly stat: string
    readonly value: number
    readonly reason: string
    readonly createdAt: Timestamp
  }>
  readonly shareLinks: ReadonlyArray<{
    readonly id: string
    readonly kind: "plain" | "score" | "challenge"
    readonly score: number | null
    readonly showName: boolean
    readonly data: Readonly<Record<string, string>> | null
    readonly createdAt: Timestamp
  }>
  readonly xProfile: XProfile | null
}

/** The endpoints that a publishable key may call, with or without a player. */
export interface Endpoints {
  readonly "POST /v1/auth/guest": {
    readonly body: SessionsGuestRequest
    readonly response: Session
  }
  readonly "POST /v1/auth/refresh": {
    readonly body: SessionsRefreshRequest
    readonly response: Session
  }
  readonly "POST /v1/auth/logout": {
    readonly body: SessionsRefreshRequest
    readonly response: unknown
  }
  readonly "POST /v1/auth/email/signup": {
    readonly body: EmailSignupRequest
    readonly response: Session
  }
  readonly "POST /v1/auth/email/login": {
    readonly body: EmailLoginRequest
    readonly response: Session
  }
  readonly "POST /v1/auth/email/verify": {
    readonly body: EmailVerifyRequest
    readonly response: PlayerResponse
  }
  readonly "POST /v1/auth/email/disown": {
    readonly body: EmailVerifyRequest
    readonly response: unknown
  }
  readonly "POST /v1/auth/password/forgot": {
    readonly body: EmailForgotRequest
    readonly response: unknown
  }
  readonly "POST /v1/auth/password/reset": {
    readonly body: EmailResetRequest
    readonly response: unknown
  }
  readonly "POST /v1/auth/link/email": {
    readonly body: PlayerEmailLinkRequest
    readonly response: PlayerResponse
  }
  readonly "POST /v1/auth/email/resend": {
    readonly body: PlayerEmailResendRequest
    readonly response: unknown
  }
  readonly "POST /v1/auth/password/change": {
    readonly body: PlayerEmailChangeRequest
    readonly response: unknown
  }
  readonly "GET /v1/gamedata/definitions": {
    readonly response: Definitions
  }
  readonly "POST /v1/auth/oauth/{provider}/start": {
    readonly params: { readonly provider: string }
    readonly body: OauthStartRequest
    readonly response: ProviderUrl
  }
  readonly "POST /v1/auth/oauth/exchange": {
    readonly body: OauthExchangeRequest
    readonly response: ProviderSession
  }
  readonly "POST /v1/auth/oauth/{provider}/native": {
    readonly params: { readonly provider: string }
    readonly body: OauthNativeRequest
    readonly response: ProviderSession
  }
  readonly "POST /v1/auth/transfer": {
    readonly response: TransferCode
  }
  readonly "POST /v1/auth/transfer/redeem": {
    readonly body: TransferRedeemRequest
    readonly response: Session
  }
  readonly "GET /v1/players/me": {
    readonly response: PlayerResponse
  }
  readonly "PATCH /v1/players/me": {
    readonly body: PlayersUpdateRequest
    readonly response: PlayerResponse
  }
  readonly "DELETE /v1/players/me": {
    readonly body: PlayerDataDeleteRequest
    readonly response: Deleted
  }
  readonly "GET /v1/players/me/identities": {
    readonly response: LinkedIdentityList
  }
  readonly "DELETE /v1/players/me/identities/{provider}": {
    readonly params: { readonly provider: string }
    readonly body: SessionsRefreshRequest
    readonly response: PlayerResponse
  }
  readonly "POST /v1/players/me/age-signal": {
    readonly body: AgesSignalRequest
    readonly response: AgeProfile
  }
  readonly "GET /v1/social/profile": {
    readonly response: AgeProfile
  }
  readonly "PUT /v1/social/age": {
    readonly body: AgesDeclareRequest
    readonly response: AgeProfile
  }
  readonly "GET /v1/social/blocks": {
    readonly query: { readonly limit?: string | number; readonly cursor?: string | number }
    readonly response: BlockList
  }
  readonly "PUT /v1/social/blocks/{playerId}": {
    readonly params: { readonly playerId: string }
    readonly response: BlockChanged
  }
  readonly "DELETE /v1/social/blocks/{playerId}": {
    readonly params: { readonly playerId: string }
    readonly response: BlockChanged
  }
  readonly "GET /v1/news/opt-in": {
    readonly response: NewsOffer
  }
  readonly "PUT /v1/news/opt-in": {
    readonly body: NewsChooseRequest
    readonly response: NewsChoice
  }
  readonly "GET /v1/players/me/sanctions": {
    readonly response: SanctionList
  }
  readonly "POST /v1/players/me/sanctions/{sanctionId}/appeal": {
    readonly params: { readonly sanctionId: string }
    readonly body: SanctionsAppealRequest
    readonly response: Appealed
  }
  readonly "POST /v1/auth/appeal": {
    readonly body: AppealsAppealRequest
    readonly response: Appealed
  }
  readonly "GET /v1/rooms": {
    readonly query: { readonly mode?: string | number; readonly limit?: string | number }
    readonly response: PublicRoomList
  }
  readonly "GET /v1/saves": {
    readonly response: SaveList
  }
  readonly "GET /v1/saves/{key}": {
    readonly params: { readonly key: string }
    readonly response: Save
  }
  readonly "PUT /v1/saves/{key}": {
    readonly params: { readonly key: string }
    readonly body: SavesWriteRequest
    readonly response: SaveItem
  }
  readonly "DELETE /v1/saves/{key}": {
    readonly params: { readonly key: string }
    readonly query: { readonly ifVersion?: string | number }
    readonly response: Deleted
  }
  readonly "GET /v1/stats": {
    readonly response: StatsRead
  }
  readonly "POST /v1/stats": {
    readonly body: StatsReportRequest
    readonly response: StatsReported
  }
  readonly "POST /v1/share/links": {
    readonly body: ShareCreateRequest
    readonly response: Shared
  }
  readonly "GET /v1/share/links/{shareId}": {
    readonly params: { readonly shareId: string }
    readonly response: ShareLinkRead
  }
  readonly "POST /v1/share/visits": {
    readonly body: ShareVisitRequest
    readonly response: VisitCounted
  }
  readonly "GET /v1/players/me/x-profile": {
    readonly response: XProfile
  }
  readonly "PUT /v1/players/me/x-profile": {
    readonly body: XProfilesShowRequest
    readonly response: XProfile
  }
  readonly "GET /v1/players/x-profiles": {
    readonly query: { readonly ids: string | number }
    readonly response: XProfiles
  }
  readonly "GET /v1/players/me/export": {
    readonly response: PlayerExport
  }
}

/** The frames of the client: what it sends, and the data of the reply. */
export interface Frames {
  readonly create: {
    readonly payload: {
      readonly mode: string
      readonly private?: boolean
      readonly maxPlayers?: number
      readonly metadata?: JsonObject
      readonly code?: string
      readonly hostOnlyState?: boolean
    }
    readonly data: RoomRef
  }
  readonly join: {
    readonly payload: {
      readonly roomId?: string
      /** A code as a person types it: case, width, spaces and dashes do not matter. */
      readonly code?: string
    }
    readonly data: RoomRef
  }
  readonly leave: {
    readonly payload: undefined
    readonly data: unknown
  }
  readonly resume: {
    readonly payload: {
      readonly roomId: string
    }
    readonly data: RoomRef
  }
  readonly send: {
    readonly payload: {
      readonly type: string
      readonly data?: unknown
      readonly to?: ReadonlyArray<string>
    }
    readonly data: {
      readonly delivered?: number
    }
  }
  readonly setState: {
    readonly payload: {
      readonly patch: JsonObject
    }
    readonly data: unknown
  }
  readonly setMyState: {
    readonly payload: {
      readonly patch: JsonObject
    }
    readonly data: unknown
  }
  readonly lock: {
    readonly payload: {
      readonly locked: boolean
    }
    readonly data: unknown
  }
  readonly roomModerate: {
    readonly payload: {
      readonly op: RoomModerateOp
      readonly playerId: string
      readonly team?: string
      readonly reason?: string
    }
    readonly data: unknown
  }
  readonly vote: {
    readonly payload: {
      readonly op?: VoteOp
      readonly playerId?: string
      readonly voteId?: string
      readonly yes?: boolean
    }
    readonly data: {
      readonly voteId: string
    }
  }
  readonly setTeam: {
    readonly payload: {
      readonly team: string
    }
    readonly data: unknown
  }
  readonly quickMatch: {
    readonly payload: {
      readonly mode: string
    }
    readonly data: RoomRef
  }
  readonly cancelMatch: {
    readonly payload: undefined
    readonly data: {
      readonly cancelled: boolean
    }
  }
  readonly signal: {
    readonly payload: {
      readonly to: string
      readonly kind: SignalKind
      readonly data?: unknown
      readonly gen?: number
    }
    readonly data: {
      readonly delivered: number
    }
  }
  readonly iceServers: {
    readonly payload: undefined
    readonly data: IceServers
  }
  readonly channelJoin: {
    readonly payload: {
      readonly channel: string
    }
    readonly data: {
      readonly channel: string
    }
  }
  readonly channelCreate: {
    readonly payload: {
      readonly channel?: string
      readonly join?: "anyone" | "invited"
      readonly send?: "anyone" | "speakers" | "server"
      readonly maxMembers?: number
      readonly voice?:
        | true
        | {
          readonly mode: "sfu"
        }
    }
    readonly data: {
      readonly channel: string
    }
  }
  readonly channelLeave: {
    readonly payload: {
      readonly channel: string
    }
    readonly data: unknown
  }
  readonly channelSend: {
    readonly payload: {
      readonly channel: string
      readonly type: string
      readonly data?: unknown
    }
    readonly data: unknown
  }
  readonly channelModerate: {
    readonly payload: {
      readonly channel: string
      readonly op: ModerateOp
      readonly playerId: PlayerId
      readonly seconds?: number
    }
    readonly data: unknown
  }
  readonly voiceJoin: {
    readonly payload: {
      readonly channel: string
      readonly session?: string
    }
    readonly data: {
      readonly mode: "p2p" | "sfu"
      readonly session: string
      readonly relayOnly: boolean
      readonly iceServers: ReadonlyArray<IceServer>
      readonly iceTransportPolicy: IceTransportPolicy
      readonly expiresAt: Timestamp
    }
  }
  readonly voiceLeave: {
    readonly payload: {
      readonly channel: string
    }
    readonly data: unknown
  }
  readonly voiceSignal: {
    readonly payload: {
      readonly channel: string
      readonly to: string
      readonly kind: SignalKind
      readonly data?: unknown
      readonly gen?: number
    }
    readonly data: {
      readonly delivered: number
    }
  }
  readonly voiceAnswer: {
    readonly payload: {
      readonly channel: string
      readonly session: string
      readonly gen: number
      readonly sdp: string
    }
    readonly data: {
      readonly candidates: ReadonlyArray<{
        readonly candidate: string
        readonly sdpMid: string
      }>
    }
  }
  readonly voicePublish: {
    readonly payload: {
      readonly channel: string
      readonly session: string
      readonly on: boolean
    }
    readonly data: {
      readonly on: boolean
      readonly canSpeak: boolean
    }
  }
  readonly voiceSpeaking: {
    readonly payload: {
      readonly channel: string
      readonly session: string
      readonly speaking: boolean
    }
    readonly data: unknown
  }
  readonly ping: {
    readonly payload: undefined
    readonly data: {
      readonly at: number
    }
  }
}

/** The error codes that calls of players get, with their details. */
export interface ErrorDetails {
  readonly age_change_not_allowed: undefined
  readonly already_appealed: undefined
  readonly already_in_room: {
    readonly roomId: string
  }
  readonly already_matching: undefined
  readonly channel_banned: {
    readonly until: string | null
  }
  readonly channel_exists: undefined
  readonly channel_forbidden: undefined
  readonly channel_full: undefined
  readonly channel_list_full: {
    readonly limit: number
  }
  readonly channel_not_found: undefined
  readonly code_taken: undefined
  readonly email_already_linked: undefined
  readonly email_taken: undefined
  readonly feature_disabled: {
    readonly feature: string
    readonly configPath: string
  }
  readonly feature_unavailable: {
    readonly features: ReadonlyArray<string>
  }
  readonly function_cpu_exceeded: undefined
  readonly function_error: undefined
  readonly function_subrequests_exceeded: undefined
  readonly functions_suspended: undefined
  readonly host_only: undefined
  readonly idempotency_in_progress: undefined
  readonly idempotency_key_reused: undefined
  readonly identity_already_linked: undefined
  readonly identity_not_linked: undefined
  readonly internal_error: {
    readonly requestId: string
  }
  readonly invalid_code: undefined
  readonly invalid_credentials: undefined
  readonly invalid_frame: {
    readonly issues: ReadonlyArray<{
      readonly path: string
      readonly message: string
    }>
  }
  readonly invalid_idempotency_key: undefined
  readonly invalid_json: undefined
  readonly invalid_key: undefined
  readonly invalid_refresh_token: undefined
  readonly invalid_request: {
    readonly issues: ReadonlyArray<{
      readonly path: string
      readonly message: string
    }>
  }
  readonly invalid_token: undefined
  readonly last_login_method: undefined
  readonly mail_unavailable: undefined
  readonly match_cancelled: undefined
  readonly method_not_allowed: undefined
  readonly mode_not_found: undefined
  readonly muted: {
    readonly until: string | null
  }
  readonly not_found: undefined
  readonly not_in_channel: undefined
  readonly not_in_room: undefined
  readonly not_matching: undefined
  readonly not_permitted: undefined
  readonly origin_not_allowed: undefined
  readonly owner_only: undefined
  readonly p2p_only: undefined
  readonly p2p_room_full: undefined
  readonly payload_too_large: {
    readonly limit: number
  }
  readonly player_banned: {
    readonly sanctionId: string
    readonly expiresAt: string | null
    readonly note: string | null
  }
  readonly player_not_found: undefined
  readonly player_not_in_room: undefined
  readonly player_required: undefined
  readonly provider_disabled: undefined
  readonly provider_not_configured: undefined
  readonly rate_limited: {
    readonly retryAfterSeconds: number
  }
  readonly refresh_race: undefined
  readonly resume_expired: undefined
  readonly room_full: undefined
  readonly room_locked: undefined
  readonly room_not_found: undefined
  readonly sanction_inactive: undefined
  readonly save_not_found: undefined
  readonly save_too_large: {
    readonly size: number
    readonly limit: number
  }
  readonly send_forbidden: undefined
  readonly session_revoked: undefined
  readonly share_inAppBrowser_disabled: undefined
  readonly share_links_disabled: undefined
  readonly share_tracking_disabled: undefined
  readonly state_too_large: {
    readonly limit: number
    readonly unit: "bytes" | "keys" | "keyCharacters" | "depth"
  }
  readonly storage_quota_exceeded: {
    readonly limit: number
    readonly used: number
  }
  readonly team_full: undefined
  readonly token_expired: undefined
  readonly too_many_blocks: undefined
  readonly too_many_channels: {
    readonly limit: number
  }
  readonly too_many_saves: {
    readonly limit: number
  }
  readonly turn_unavailable: undefined
  readonly unauthorized: undefined
  readonly unavailable: undefined
  readonly unknown_type: undefined
  readonly unsupported_media_type: undefined
  readonly upgrade_required: undefined
  readonly version_conflict: {
    readonly currentVersion: number
    readonly updatedAt: string | null
    readonly size: number | null
  }
  readonly voice_disabled: undefined
  readonly voice_suspended: undefined
  readonly voice_too_large: {
    readonly limit: number
  }
  readonly voice_unavailable: undefined
  readonly vote_cooldown: {
    readonly retryAfterSeconds: number
  }
  readonly vote_not_found: undefined
  readonly vote_running: undefined
  readonly x_signin_unavailable: {
    readonly continueAsGuest: true
  }
}
