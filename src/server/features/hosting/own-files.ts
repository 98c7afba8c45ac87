/**
 * Files that the service adds to every hosted app: base URL and publishable key. With them a game needs
 * no settings at build time. No deployment has files of the other dot names that the service
 * reserves.
 */
import { reservedPaths } from "#rpc/hosting/paths"
import type { HostedApp } from "./apps.ts"

export interface OwnFile {
  readonly headers: Readonly<Record<string, string | number>>
  readonly body: Buffer
}

const make = (type: string, text: string): OwnFile => {
  const body = Buffer.from(text)
  return {
    body,
    headers: {
      "content-type": type,
      "content-length": body.length,
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff"
    }
  }
}

/** Returns the service's file at a path of an app; undefined if the path belongs to the app. */
export const ownFile = (
  { name, publishableKey }: HostedApp,
  path: string,
  baseUrl: string
): OwnFile | undefined => {
  const isScript = path === `/${reservedPaths.configScript}`
  if (!isScript && path !== `/${reservedPaths.wellKnown}`) return undefined
  const config = JSON.stringify({
    baseUrl,
    publishableKey: publishableKey?.plain ?? null,
    environment: name
  })
  return isScript
    ? make("text/javascript; charset=utf-8", `globalThis.svcConfig = Object.freeze(${config})\n`)
    : make("application/json", `${config}\n`)
}
