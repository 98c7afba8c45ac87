/** Paths of files in a deployment: which are refused, and why. */
import { hosting } from "./limits.ts"

/** Paths of every hosted app that the service answers itself. */
export const reservedPaths = {
  /** Base URL and publishable key, as JSON. */
  wellKnown: ".well-known/svc.json",
  /** The same as a script. */
  configScript: ".svc/config.js",
  /** Page of a share link: the tags of its card. It forwards people to the app. */
  shared: ".svc/s",
  /** The settings of a deployment. It is part of a deployment, and not served. */
  settings: "svc.hosting.json"
} as const

const reserved = /^(?:\.fn|\.svc|\.card)(?:[/.]|$)|^\.well-known\/svc\.json$/i

/** Returns why a deployment cannot have a file of this path, or undefined. */
export const pathIssue = (path: string): string | undefined => {
  if (path === "") return "Expected a path"
  if (path.length > hosting.pathMaxCharacters) {
    return `Expected at most ${hosting.pathMaxCharacters} characters`
  }
  if (!path.isWellFormed()) return "Expected no lone surrogates"
  if (/\p{Cc}/u.test(path)) return "Expected no control characters"
  if (path.includes("\\")) return "Expected / instead of a backslash"
  if (path.startsWith("/")) return "Expected a relative path, without a leading slash"
  if (path.normalize("NFC") !== path) return "Expected the composed form of Unicode (NFC)"
  if (path.split("/").some((segment) => segment === "" || segment === "." || segment === "..")) {
    return 'Expected no empty segments, and none that is "." or ".."'
  }
  return reserved.test(path) ? "The service answers this path itself: choose another" : undefined
}
