/** A game of React Native: bundled by Metro with the settings of React Native. */
import { typedPlay } from "./play.ts"

export const phoneGame: Readonly<Record<string, string>> = {
  "package.json": `{ "name": "phone-game" }`,
  "babel.config.js": `module.exports = { presets: ["module:@react-native/babel-preset"] }`,
  "play.ts": typedPlay,
  "index.tsx": `
import { usePlayer } from "@player-backend/client/react"
import { play } from "./play"

declare const baseUrl: string
declare const gameKey: string
declare const report: (text: string) => void

const hooks = typeof usePlayer
play(baseUrl, gameKey).then((text) => report(text + ", hooks: " + hooks), (error) => report(String(error)))
`,
  // The modules before the main one are React Native's own, which need a phone.
  "bundle.js": `
const { join } = require("node:path")
const { getDefaultConfig, mergeConfig } = require("@react-native/metro-config")
const Metro = require("metro")

const beside = join(__dirname, "..")
const config = mergeConfig(getDefaultConfig(__dirname), {
  projectRoot: __dirname,
  watchFolders: [beside],
  cacheStores: [],
  maxWorkers: 1,
  resolver: { useWatchman: false, nodeModulesPaths: [join(beside, "node_modules")] },
  serializer: { getModulesRunBeforeMainModule: () => [] },
  reporter: { update: ({ type, error }) => { if (error !== undefined) console.error(type, error) } }
})
const options = { entry: "index.tsx", platform: "android", dev: false, minify: true, out: "bundled.js" }
Metro.runBuild(config, options).catch((error) => {
  console.error(error)
  process.exitCode = 1
})
`,
  // The globals of React Native. It has no document, no Web Crypto, no locks and no DOMException.
  "phone.js": `
const { readFileSync } = require("node:fs")
const { createContext, runInContext } = require("node:vm")

const names = ["AbortController", "AbortSignal", "Event", "EventTarget", "Headers", "Request", "Response",
  "TextEncoder", "URL", "URLSearchParams", "WebSocket", "clearInterval", "clearTimeout", "console", "fetch",
  "performance", "queueMicrotask", "setInterval", "setTimeout"]
const phone = Object.fromEntries(names.map((name) => [name, globalThis[name]]))
phone.window = phone.self = phone.global = phone
phone.navigator = { product: "ReactNative" }
const [, , baseUrl, gameKey] = process.argv
runInContext(readFileSync("bundled.js", "utf8"), createContext({ ...phone, baseUrl, gameKey, report: console.log }))
`
}
