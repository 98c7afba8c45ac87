/**
 * Titles and descriptions of the tags of the OpenAPI document, one for each HTTP group, and the
 * sections into which the API page sorts them. {@link tagged} refuses a group without a tag at compile
 * time.
 */
import { HttpApiGroup, type HttpApiEndpoint, OpenApi } from "effect/http-api"

interface Tag {
  readonly title: string
  readonly description: string
}

const secretKey = "For your own server, with the environment's secret key."
const dashboard = "For developers of the project, with a developer session."

const players = {
  sessions: {
    title: "Sessions",
    description: "Guest sign-in, token refresh and sign-out."
  },
  email: {
    title: "Email sign-in",
    description: "Sign-up and sign-in with an email address and a password, and the links in mails."
  },
  playerEmail: {
    title: "Email of the player",
    description: "Linking an email address to the signed-in player, and changing its password."
  },
  oauth: {
    title: "OAuth sign-in",
    description: "Sign-in with Apple, Discord, Google or X, in a browser (PKCE) or in a native app."
  },
  transfer: {
    title: "Session transfer",
    description: "Short codes that sign the same player in on another device or browser."
  },
  players: {
    title: "Players",
    description: "The profile of the signed-in player."
  },
  identities: {
    title: "Identities",
    description: "The sign-in methods of the signed-in player."
  },
  xProfiles: {
    title: "X profiles",
    description: "What players show of their account at X."
  },
  playerData: {
    title: "Player data",
    description: "Export and deletion of everything that is stored about the signed-in player."
  },
  ages: {
    title: "Ages",
    description: "The age band of the signed-in player, and the features that it allows."
  },
  news: {
    title: "News",
    description: "The player's consent to news by email."
  },
  sanctions: {
    title: "Sanctions",
    description: "Bans of the signed-in player, and appeals against them."
  },
  appeals: {
    title: "Appeals",
    description: "Appeals of a banned player who can no longer sign in."
  }
} as const

const games = {
  rooms: {
    title: "Rooms",
    description:
      "The list of open rooms. Everything else in rooms happens over the realtime socket."
  },
  saves: {
    title: "Saves",
    description: "Versioned JSON documents of the signed-in player."
  },
  stats: {
    title: "Stats",
    description: "Numbers that the signed-in player reports, combined by the rules in the config."
  },
  share: {
    title: "Share",
    description: "Links to post, their visits, card images and card tags."
  },
  definitions: {
    title: "Definitions",
    description: "The public part of the environment's config: stats and multiplayer modes."
  }
} as const

const server = {
  key: {
    title: "Key",
    description: "What a key opens, for tools that store keys under a name."
  },
  channels: {
    title: "Channels",
    description: `Managing realtime channels and sending messages to them. ${secretKey}`
  },
  config: {
    title: "Config",
    description: `Reading and replacing the environment's config, and its versions. ${secretKey}`
  },
  features: {
    title: "Features",
    description: `The features of the environment and how to enable them. ${secretKey}`
  },
  functions: {
    title: "Functions",
    description: `Code that runs in the service, with databases, secrets and crons. ${secretKey}`
  },
  hosting: {
    title: "Hosting",
    description: `Deployments of the app's files, and its addresses. ${secretKey}`
  },
  providers: {
    title: "OAuth providers",
    description: `Credentials of the OAuth providers. ${secretKey}`
  },
  moderation: {
    title: "Moderation",
    description: `Bans, age bands, appeals and token verification. ${secretKey}`
  },
  adminPlayerData: {
    title: "Player data requests",
    description: `Export and deletion of any player's data. ${secretKey}`
  },
  playerSaves: {
    title: "Saves of players",
    description: `Saves of any player, without the rate limits of players. ${secretKey}`
  },
  playerStats: {
    title: "Stats of players",
    description: `Stats of any player, without the rate limits of players. ${secretKey}`
  },
  adminShare: {
    title: "Share statistics",
    description: `Counts of share links, labelled links and card tags. ${secretKey}`
  },
  integrity: {
    title: "Integrity webhook",
    description: `The secret that signs calls to the stats integrity webhook. ${secretKey}`
  }
} as const

const project = {
  projects: {
    title: "Projects",
    description: "Listing and creating the developer's projects."
  },
  project: {
    title: "Project",
    description: `Renaming and deleting one project, and revoking its keys. ${dashboard}`
  },
  environment: {
    title: "Environment",
    description: `Keys, usage, players and live rooms of one environment. ${dashboard}`
  },
  live: {
    title: "Live",
    description: `One room with its members and state, voice calls, and the runners. ${dashboard}`
  },
  projectConfig: {
    title: "Config (project)",
    description: `Reading and replacing an environment's config, and its versions. ${dashboard}`
  },
  projectFeatures: {
    title: "Features (project)",
    description: `The features of an environment and how to enable them. ${dashboard}`
  },
  projectFunctions: {
    title: "Functions (project)",
    description: `Code that runs in the service, with databases, secrets and crons. ${dashboard}`
  },
  projectHosting: {
    title: "Hosting (project)",
    description: `Deployments of the app's files, and its addresses. ${dashboard}`
  },
  projectProviders: {
    title: "OAuth providers (project)",
    description: `Credentials of the OAuth providers. ${dashboard}`
  },
  projectModeration: {
    title: "Moderation (project)",
    description: `Bans, age bands, appeals and token verification. ${dashboard}`
  },
  projectPlayerData: {
    title: "Player data requests (project)",
    description: `Export and deletion of any player's data. ${dashboard}`
  },
  projectShare: {
    title: "Share statistics (project)",
    description: `Counts of share links, labelled links and card tags. ${dashboard}`
  },
  projectIntegrity: {
    title: "Integrity webhook (project)",
    description: `The secret that signs calls to the stats integrity webhook. ${dashboard}`
  },
  audit: {
    title: "Audit log",
    description: `Who changed what in the project. ${dashboard}`
  }
} as const

const developers = {
  developerSignIn: {
    title: "Developer sign-in",
    description: "Sign-up and sign-in of developers, without a key."
  },
  developerOAuth: {
    title: "Developer sign-in with a provider",
    description: "Sign-in, link and renewed proof of developers with Google or GitHub."
  },
  developers: {
    title: "Developers",
    description: "The account, identities and session of the signed-in developer."
  },
  money: {
    title: "Money",
    description: "Prepaid money of the signed-in developer: balance, ledger, checkouts and usage."
  },
  payments: {
    title: "Payment events",
    description: "Events of the payment provider, authenticated by their signature."
  },
  platform: {
    title: "Platform",
    description: "Name, version and enabled features of this deployment."
  },
  system: {
    title: "System",
    description: "Liveness, readiness, and the public keys (JWKS) that verify access tokens."
  }
} as const

const tags = { ...players, ...games, ...server, ...project, ...developers }

/** Adds title and description to a group. */
export const tagged = <Id extends keyof typeof tags, E extends HttpApiEndpoint.Constraint>(
  group: HttpApiGroup.HttpApiGroup<Id, E>
): HttpApiGroup.HttpApiGroup<Id, E> =>
  group.annotateMerge(OpenApi.annotations(tags[group.identifier]))

const section = (name: string, members: Readonly<Record<string, Tag>>) => ({
  name,
  tags: Object.values(members).map(({ title }) => title)
})

/** Sections of the API page: the vendor extension `x-tagGroups`, which Scalar and Redoc read. */
export const tagGroups = [
  section("Player API", players),
  section("Game API", games),
  section("Server API", server),
  section("Project API", project),
  section("Developers and platform", developers)
]
