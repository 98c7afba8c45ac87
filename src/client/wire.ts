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

export interface RoomRef {
  readonly roomId: string
  readonly code: string
}

export interface RoomPlayer {
  readonly id: string
  readonly displayName: string
  readonly connected: boolean
  readonly joinedAt: string
  readonly state: JsonObject
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
  readonly createdAt: string
  readonly players: ReadonlyArray<RoomPlayer>
  readonly p2p?: {
    readonly relayOnly: boolean
    readonly maxPlayers: number
  }
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
    readonly reason: "left" | "timeout" | "banned" | "deleted"
  }
  | {
    readonly t: "player_disconnected"
    readonly playerId: string
    readonly graceUntil: string
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
    readonly reason: "left" | "timeout" | "banned" | "deleted"
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
  readonly joinedAt: string
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
  readonly createdAt: string
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

export interface Moderation {
  readonly op: ModerateOp
  readonly playerId: string
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

export type IceTransportPolicy = "relay" | "all"

export interface IceServer {
  readonly urls: ReadonlyArray<string>
  readonly username?: string
  readonly credential?: string
}

export interface IceServers {
  readonly iceServers: ReadonlyArray<IceServer>
  readonly iceTransportPolicy: IceTransportPolicy
  readonly expiresAt: string
}

export interface HeldSeat {
  readonly roomId: string
  readonly code: string
  readonly mode: string
  readonly graceUntil: string
}

export interface Welcome {
  readonly t: "welcome"
  readonly connectionId: string
  readonly playerId: string | null
  readonly serverTime: number
  readonly heartbeatSeconds: number
  readonly tokenExpiresAt: string | null
  readonly rooms: ReadonlyArray<HeldSeat>
}

export interface Warn {
  readonly t: "warn"
  readonly code: string
  readonly message: string
  readonly details?: unknown
}

export interface Session {
  readonly player: Player
  readonly accessToken: string
  readonly expiresIn: number
  readonly refreshToken: string
}

export interface Player {
  readonly id: string
  readonly displayName: string
  readonly isGuest: boolean
  readonly createdAt: string
  readonly identities: ReadonlyArray<Identity>
  readonly emailVerified: boolean
}

export interface Identity {
  readonly provider: string
}

export interface PlayerResponse {
  readonly player: Player
}

export interface ProviderUrl {
  readonly url: string
}

export interface ProviderSession {
  readonly player: Player
  readonly accessToken: string
  readonly expiresIn: number
  readonly refreshToken: string
  readonly provider: Provider
  readonly linked: boolean
}

export interface TransferCode {
  readonly code: string
  readonly expiresIn: number
}

export interface Deleted {
  readonly deleted: true
}

export interface LinkedIdentityList {
  readonly identities: ReadonlyArray<LinkedIdentity>
}

export interface LinkedIdentity {
  readonly provider: Method
  readonly email?: string
  readonly emailVerified?: boolean
  readonly username?: string
  readonly linkedAt: string
}

export interface PlayerExport {
  readonly exportedAt: string
  readonly player: Player
  readonly lastSeenAt: string | null
  readonly age: {
    readonly ageBand: AgeBand
    readonly declaredAgeBand: AgeBand | null
    readonly capabilities: Capabilities
    readonly signalledAgeBand: AgeBand | null
  }
  readonly identities: ReadonlyArray<{
    readonly provider: Method
    readonly email?: string
    readonly emailVerified?: boolean
    readonly username?: string
    readonly linkedAt: string
    readonly subject: string
  }>
  readonly news:
    | {
      readonly optIn: boolean
      readonly chosenAt: string
    }
    | null
  readonly sessions: ReadonlyArray<{
    readonly id: string
    readonly createdAt: string
    readonly lastUsedAt: string
    readonly userAgent: null
  }>
  readonly saves: ReadonlyArray<Save>
  readonly stats: Readonly<Record<string, number>>
  readonly rejectedStats: ReadonlyArray<{
    readonly stat: string
    readonly value: number
    readonly reason: string
    readonly createdAt: string
  }>
  readonly sanctions: ReadonlyArray<Sanction>
  readonly appeals: ReadonlyArray<{
    readonly sanctionId: string
    readonly status: "open" | "accepted" | "rejected"
    readonly message: string
    readonly createdAt: string
    readonly response: string | null
  }>
  readonly days: ReadonlyArray<string>
  readonly rooms: ReadonlyArray<string>
  readonly channels: ReadonlyArray<string>
  readonly shareLinks: ReadonlyArray<unknown>
  readonly xProfile: null
}

export interface Capabilities {
  readonly directConnections: boolean
  readonly voice: boolean
  readonly openChat: boolean
  readonly showName: boolean
  readonly news: boolean
}

export interface Save {
  readonly key: string
  readonly version: number
  readonly size: number
  readonly updatedAt: string
  readonly data: unknown
}

export interface Sanction {
  readonly id: string
  readonly kind: "ban"
  readonly active: boolean
  readonly note: string | null
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly liftedAt: string | null
  readonly appeal?: {
    readonly status: "open" | "accepted" | "rejected"
    readonly message: string
    readonly createdAt: string
    readonly response: string | null
  }
}

export interface AgeProfile {
  readonly ageBand: AgeBand
  readonly declaredAgeBand: AgeBand | null
  readonly capabilities: Capabilities
}

export interface NewsOffer {
  readonly enabled: boolean
}

export interface NewsChoice {
  readonly enabled: boolean
  readonly optIn: boolean
}

export interface SanctionList {
  readonly sanctions: ReadonlyArray<Sanction>
}

export interface Appealed {
  readonly sanction: Sanction
}

export interface PublicRoomList {
  readonly rooms: ReadonlyArray<PublicRoom>
}

export interface PublicRoom {
  readonly id: string
  readonly code: string
  readonly mode: string
  readonly players: number
  readonly maxPlayers: number
  readonly metadata: JsonObject
  readonly createdAt: string
}

export interface SaveList {
  readonly saves: ReadonlyArray<SaveItem>
}

export interface SaveItem {
  readonly key: string
  readonly version: number
  readonly size: number
  readonly updatedAt: string
}

export interface StatsRead {
  readonly stats: Readonly<Record<string, number>>
}

export interface StatsReported {
  readonly stats: Readonly<Record<string, PeriodValues>>
  readonly rejected: ReadonlyArray<Rejection>
  readonly unlocked: ReadonlyArray<{
    readonly key: string
    readonly unlockedAt: string
  }>
}

export interface PeriodValues {
  readonly all: number
  readonly daily: number
  readonly weekly: number
  readonly monthly: number
}

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

export interface Definitions {
  readonly configVersion: number
  readonly resetTimeZone: string
  /** Every feature is off until its switch is true. */
  readonly features: {
    readonly emailLogin: boolean
    /** Cloud saves. */
    readonly saves: boolean
    /** Submitting and reading stats. */
    readonly stats: boolean
    /** Rooms, matchmaking, the realtime WebSocket. */
    readonly multiplayer: boolean
    /** Realtime channels; the WebSocket connects when this or multiplayer is on. */
    readonly realtimeChannels: boolean
    /** Voice calls in channels created with voice. Needs realtimeChannels. */
    readonly voice: boolean
    /** Deploying and serving the app; while off, a hosted app is not served. */
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

/** The endpoints that a publishable key may call, with or without a player. */
export interface Endpoints {
  readonly "POST /v1/auth/guest": {
    readonly body: {
      readonly displayName?: string
    }
    readonly response: Session
  }
  readonly "POST /v1/auth/refresh": {
    readonly body: {
      readonly refreshToken: string
    }
    readonly response: Session
  }
  readonly "POST /v1/auth/logout": {
    readonly body: {
      readonly refreshToken: string
    }
    readonly response: unknown
  }
  readonly "POST /v1/auth/email/signup": {
    readonly body: {
      readonly email: string
      readonly password: string
      readonly displayName?: string
      readonly redirectUrl?: string
    }
    readonly response: Session
  }
  readonly "POST /v1/auth/email/login": {
    readonly body: {
      readonly email: string
      readonly password: string
    }
    readonly response: Session
  }
  readonly "POST /v1/auth/email/verify": {
    readonly body: {
      readonly token: string
    }
    readonly response: PlayerResponse
  }
  readonly "POST /v1/auth/email/disown": {
    readonly body: {
      readonly token: string
    }
    readonly response: unknown
  }
  readonly "POST /v1/auth/password/forgot": {
    readonly body: {
      readonly email: string
      readonly redirectUrl?: string
    }
    readonly response: unknown
  }
  readonly "POST /v1/auth/password/reset": {
    readonly body: {
      readonly token: string
      readonly password: string
    }
    readonly response: unknown
  }
  readonly "POST /v1/auth/link/email": {
    readonly body: {
      readonly email: string
      readonly password: string
      readonly redirectUrl?: string
    }
    readonly response: PlayerResponse
  }
  readonly "POST /v1/auth/email/resend": {
    readonly body: {
      readonly redirectUrl?: string
    }
    readonly response: unknown
  }
  readonly "POST /v1/auth/password/change": {
    readonly body: {
      readonly currentPassword: string
      readonly newPassword: string
      readonly refreshToken: string
    }
    readonly response: unknown
  }
  readonly "POST /v1/auth/oauth/{provider}/start": {
    readonly params: { readonly provider: string }
    readonly body: {
      readonly redirectUrl: string
      readonly challenge: string
      readonly mode?: SignInMode
    }
    readonly response: ProviderUrl
  }
  readonly "POST /v1/auth/oauth/exchange": {
    readonly body: {
      readonly code: string
      readonly verifier: string
    }
    readonly response: ProviderSession
  }
  readonly "POST /v1/auth/oauth/{provider}/native": {
    readonly params: { readonly provider: string }
    readonly body: NativeRequest
    readonly response: ProviderSession
  }
  readonly "POST /v1/auth/transfer": {
    readonly response: TransferCode
  }
  readonly "POST /v1/auth/transfer/redeem": {
    readonly body: {
      readonly code: string
    }
    readonly response: Session
  }
  readonly "GET /v1/players/me": {
    readonly response: PlayerResponse
  }
  readonly "PATCH /v1/players/me": {
    readonly body: {
      readonly displayName: string
    }
    readonly response: PlayerResponse
  }
  readonly "DELETE /v1/players/me": {
    readonly body: {
      readonly password?: string
      readonly refreshToken?: string
    }
    readonly response: Deleted
  }
  readonly "GET /v1/players/me/identities": {
    readonly response: LinkedIdentityList
  }
  readonly "DELETE /v1/players/me/identities/{provider}": {
    readonly params: { readonly provider: string }
    readonly body: {
      readonly refreshToken: string
    }
    readonly response: PlayerResponse
  }
  readonly "GET /v1/players/me/export": {
    readonly response: PlayerExport
  }
  readonly "POST /v1/players/me/age-signal": {
    readonly body: AgeSignal
    readonly response: AgeProfile
  }
  readonly "GET /v1/social/profile": {
    readonly response: AgeProfile
  }
  readonly "PUT /v1/social/age": {
    readonly body: {
      readonly band: AgeBand
    }
    readonly response: AgeProfile
  }
  readonly "GET /v1/news/opt-in": {
    readonly response: NewsOffer
  }
  readonly "PUT /v1/news/opt-in": {
    readonly body: {
      readonly optIn: boolean
    }
    readonly response: NewsChoice
  }
  readonly "GET /v1/players/me/sanctions": {
    readonly response: SanctionList
  }
  readonly "POST /v1/players/me/sanctions/{sanctionId}/appeal": {
    readonly params: { readonly sanctionId: string }
    readonly body: {
      readonly message: string
    }
    readonly response: Appealed
  }
  readonly "POST /v1/auth/appeal": {
    readonly body: {
      readonly refreshToken: string
      readonly sanctionId?: string
      readonly message: string
    }
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
    readonly body: {
      readonly data: unknown
      readonly ifVersion?: number
    }
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
    readonly body: {
      readonly stats: Readonly<Record<string, number>>
    }
    readonly response: StatsReported
  }
  readonly "GET /v1/gamedata/definitions": {
    readonly response: Definitions
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
      readonly playerId: string
      readonly seconds?: number
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

/** The error codes of the service, with their details. */
export interface ErrorDetails {
  readonly age_change_not_allowed: undefined
  readonly already_appealed: undefined
  readonly already_in_room: {
    readonly roomId: string
  }
  readonly already_matching: undefined
  readonly already_redeemed: undefined
  readonly already_resolved: undefined
  readonly blobs_missing: {
    readonly missing: ReadonlyArray<string>
  }
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
  readonly config_conflict: {
    readonly currentVersion: number
  }
  readonly email_already_linked: undefined
  readonly email_taken: undefined
  readonly feature_disabled: {
    readonly feature: string
    readonly configPath: string
  }
  readonly feature_unavailable: {
    readonly features: ReadonlyArray<string>
  }
  readonly host_only: undefined
  readonly idempotency_in_progress: undefined
  readonly idempotency_key_reused: undefined
  readonly identity_already_linked: undefined
  readonly internal_error: {
    readonly requestId: string
  }
  readonly invalid_code: undefined
  readonly invalid_config: {
    readonly issues: ReadonlyArray<{
      readonly path: string
      readonly message: string
    }>
  }
  readonly invalid_credentials: undefined
  readonly invalid_frame: {
    readonly issues: ReadonlyArray<{
      readonly path: string
      readonly message: string
    }>
  }
  readonly invalid_idempotency_key: undefined
  readonly invalid_invite_code: undefined
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
  readonly invite_code_used: undefined
  readonly invite_limit_reached: undefined
  readonly last_login_method: undefined
  readonly mail_unavailable: undefined
  readonly match_cancelled: undefined
  readonly method_not_allowed: undefined
  readonly mode_not_found: undefined
  readonly muted: {
    readonly until: string | null
  }
  readonly name_reserved: undefined
  readonly not_found: undefined
  readonly not_in_channel: undefined
  readonly not_in_room: undefined
  readonly not_matching: undefined
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
  readonly prepaid_required: undefined
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
  readonly share_images_disabled: undefined
  readonly share_inAppBrowser_disabled: undefined
  readonly share_links_disabled: undefined
  readonly share_tags_disabled: undefined
  readonly share_tracking_disabled: undefined
  readonly signups_closed: undefined
  readonly state_too_large: {
    readonly limit: number
    readonly unit: "bytes" | "keys" | "keyCharacters" | "depth"
  }
  readonly storage_quota_exceeded: {
    readonly limit: number
    readonly used: number
  }
  readonly token_expired: undefined
  readonly too_many_channels: {
    readonly limit: number
  }
  readonly too_many_keys: {
    readonly limit: number
  }
  readonly too_many_projects: {
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
  }
  readonly voice_in_use: undefined
  readonly voice_too_large: {
    readonly limit: number
  }
  readonly x_signin_unavailable: {
    readonly continueAsGuest: true
  }
}
