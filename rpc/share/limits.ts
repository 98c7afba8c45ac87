/** Limits of share links and their cards, and bounds of what draws cards. */
import { MiB, secondsPerDay } from "../units.ts"

/** Share links, their counts and card images. */
export const share = {
  idCharacters: 10,
  labelMaxCharacters: 80,
  /** Data of a link, as JSON. */
  dataMaxBytes: 1024,
  /** Page that forwards to a hosted app: previews read only the beginning. */
  forwardPageMaxBytes: 2048,
  /** Links that a player keeps; a new one replaces the oldest. */
  linksPerPlayer: 500,
  statsDaysDefault: 30,
  statsDaysMax: 366,
  /** Visitors of one address that count, of one link and day: a class behind one router. */
  visitorsPerAddress: 30,
  /** A visitor's account counts as new for this long. */
  newPlayerSeconds: secondsPerDay,
  cardWidthPixels: 1200,
  cardHeightPixels: 600,
  cardBackgroundMaxBytes: 2 * MiB,
  cardFontMaxBytes: 10 * MiB,
  xProfilesMax: 100
} as const

/** The drawing of card images on one node. */
export const shareCards = {
  /** Memory of the drawing process, beyond which the service replaces it. */
  processMaxBytes: 768 * MiB,
  rendererCacheBytes: 32 * MiB,
  /** Renderers for fonts of apps. */
  fontsCached: 4,
  drawCpuMillis: 5000,
  drawMaxMillis: 30_000,
  /** Longest drawing with files of the app: shorter than others wait. Then the card is drawn without. */
  ownDrawMaxMillis: 5000,
  /** CPU time for one environment at once, and the share of the time at which it comes back. */
  drawBudgetMillis: 20_000,
  drawBudgetShare: 0.2,
  /** Size of a background picture. Decoded, it has four bytes a pixel. */
  pictureMaxSide: 8192,
  pictureMaxPixels: 4096 * 4096,
  /** Files of apps that could not be drawn, and how long the service does not try them again. */
  failedAssetsMax: 1000,
  failedAssetSeconds: 3600,
  /** Cards of one environment that wait to be drawn, and how long. */
  waitingPerEnvironment: 64,
  waitMillis: 10_000,
  cacheMaxBytes: 256 * MiB,
  maxAgeSeconds: secondsPerDay
} as const
