/**
 * The players that `svc seed` creates: names, saves, skill and bans, the same ones on every run. A longer
 * list begins with the shorter one, so that a second run adds only what is missing.
 */

/** Decision on an appeal. */
export interface AppealDecision {
  readonly accept: boolean
  readonly response: string
}

/** The ban of a player, with the appeal against it. */
export interface SeededBan {
  readonly reason: string
  readonly publicNote: string
  readonly durationHours: number | undefined
  readonly appeal: string | undefined
  readonly decision: AppealDecision | undefined
}

/** A player of the list. */
export interface SeededPlayer {
  readonly name: string
  /**
   * Email address of an account, absent for a guest. `.example` is reserved, so no mail reaches
   * anybody.
   */
  readonly email: string | undefined
  /** 0 to 1: few players have much of it. */
  readonly skill: number
  readonly saves: ReadonlyArray<{ readonly key: string; readonly data: object }>
  readonly ban: SeededBan | undefined
}

/** One account and one ban in this many players. */
const groupSize = 25
const accountPlace = 3
const banPlace = 7

const firstNames =
  "Amara,Jonas,Mei,Diego,Freya,Kofi,Ines,Tomasz,Yuki,Leila,Oscar,Priya,Mateo,Nora,Emeka,Sofia,Lars,Aiko,Omar,Clara"
const adjectives =
  "Quiet,Brave,Lucky,Frosty,Rapid,Golden,Sleepy,Neon,Crimson,Wild,Silver,Cosmic,Tiny,Stormy,Velvet,Turbo,Mossy,Electric"
const animals =
  "Heron,Otter,Fox,Lynx,Badger,Falcon,Panda,Moth,Wolf,Raven,Gecko,Koala,Bison,Shark,Owl,Hare,Tiger,Newt"
const levels = "meadow,harbour,caves,citadel,glacier,orchard"

const bans: ReadonlyArray<Omit<SeededBan, "appeal" | "decision">> = [
  {
    reason: "Reported 6 times: insults in chat",
    publicNote: "Insulting other players",
    durationHours: 72
  },
  {
    reason: "1,200 wins in an hour: automated play",
    publicNote: "Use of automated programs",
    durationHours: undefined
  },
  { reason: "Sold accounts", publicNote: "Trading accounts", durationHours: undefined },
  { reason: "Left 14 ranked games in a row", publicNote: "Leaving games early", durationHours: 24 }
]

const appeals: ReadonlyArray<{ readonly text: string; readonly decision?: AppealDecision }> = [
  { text: "I was angry and I am sorry. It will not happen again." },
  {
    text: "My little brother played on my phone that evening.",
    decision: { accept: false, response: "Each player answers for their own account." }
  },
  {
    text: "My connection broke down, I did not leave on purpose. Please look at the times.",
    decision: { accept: true, response: "The log agrees with you. Sorry for the trouble." }
  },
  { text: "I never used a program. Can you check the replay of my last game?" }
]

/**
 * Mulberry32, a generator of numbers from 0 to 1. The source is here because the names must never
 * change: by them a second run finds the players of the first.
 */
const makeRandom = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

type Random = ReturnType<typeof makeRandom>

const pick = (random: Random, words: string): string => {
  const list = words.split(",")
  return list[Math.floor(random() * list.length)] ?? ""
}

const makeName = (random: Random): string => {
  const number = 10 + Math.floor(random() * 90)
  const style = random()
  if (style < 0.4) return `${pick(random, adjectives)}${pick(random, animals)}`
  if (style < 0.7) return `${pick(random, firstNames)}${number}`
  return `${pick(random, animals).toLowerCase()}_${pick(random, firstNames).toLowerCase()}`
}

const makeSaves = (random: Random, skill: number): SeededPlayer["saves"] => {
  const slots = Math.floor(random() * 3)
  const settings = { music: Math.round(random() * 10) / 10, language: "en", vibration: true }
  const slot = (index: number) => ({
    key: `slot-${index + 1}`,
    data: {
      level: pick(random, levels),
      chapter: 1 + Math.floor(skill * 11),
      coins: Math.floor(random() * 900),
      inventory: ["lantern", "rope", "map"].slice(0, 1 + Math.floor(random() * 3))
    }
  })
  return [{ key: "settings", data: settings }, ...Array.from({ length: slots }, (_, i) => slot(i))]
}

/** The ban of the player at this place; every second banned player appeals. */
const banAt = (index: number): SeededBan | undefined => {
  if (index % groupSize !== banPlace) return undefined
  const group = Math.floor(index / groupSize)
  const ban = bans[group % bans.length]
  if (ban === undefined) return undefined
  const appeal = group % 2 === 0 ? appeals[(group / 2) % appeals.length] : undefined
  return { ...ban, appeal: appeal?.text, decision: appeal?.decision }
}

/** The first `count` players of the list. */
export const seededPlayers = (count: number): ReadonlyArray<SeededPlayer> => {
  const random = makeRandom(20_240_229)
  const names = new Set<string>()
  return Array.from({ length: count }, (_, index) => {
    let name = makeName(random)
    for (let suffix = 2; names.has(name.toLowerCase()); suffix += 1) {
      name = `${name.replace(/_\d+$/, "")}_${suffix}`
    }
    names.add(name.toLowerCase())
    const skill = random() ** 2.5
    const saves = makeSaves(random, skill)
    const isAccount = index % groupSize === accountPlace
    const email = isAccount ? `${name.toLowerCase()}@seed.example` : undefined
    return { name, email, skill, saves, ban: banAt(index) }
  })
}

/** Aggregation of a stat's reports, and the largest value in a report. */
export interface StatToFill {
  readonly key: string
  readonly aggregation: "sum" | "max" | "min" | "latest"
  readonly maxPerSubmit?: number | undefined
}

/** A value for a stat: the better the player, the higher it is, or the lower where the least counts. */
export const statValue = ({ aggregation, maxPerSubmit }: StatToFill, skill: number): number => {
  const value = aggregation === "min" ? 180 - skill * 135 : 1 + skill * 4_999
  const rounded = aggregation === "min" ? Math.round(value * 10) / 10 : Math.round(value)
  return maxPerSubmit === undefined ? rounded : Math.min(rounded, maxPerSubmit)
}
