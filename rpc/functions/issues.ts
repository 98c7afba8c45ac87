/** Issues of a deployment of Functions, by rules that concern names and several fields. */
import { Cron, Result } from "effect"
import type { Issue } from "../errors/requests.ts"
import { isStorable } from "../text.ts"
import type { NewFunctionsDeployment } from "./deployment.ts"
import { functions } from "./limits.ts"

const secretForm = /^[A-Z][A-Z0-9_]{0,63}$/

const bindingForm = /^[A-Za-z][A-Za-z0-9_]{0,63}$/

const classForm = /^[A-Za-z_$][A-Za-z0-9_$]{0,63}$/

const reservedMessage = "The service uses this name itself: choose another"

/** Reserved names: those that the service gives to the code itself, and those of every object. */
const reservedNames: ReadonlySet<string> = new Set([
  "svc",
  "constructor",
  "hasOwnProperty",
  "isPrototypeOf",
  "propertyIsEnumerable",
  "prototype",
  "toLocaleString",
  "toString",
  "valueOf"
])

const isReserved = (name: string): boolean => reservedNames.has(name) || /^svc_/i.test(name)

/** Returns the reason why a secret cannot have this name, or undefined. */
export const secretNameIssue = (name: string): string | undefined => {
  if (!secretForm.test(name)) {
    return "Expected up to 64 upper-case letters, digits and underscores, with a letter first"
  }
  return isReserved(name) ? reservedMessage : undefined
}

const bindingNameIssue = (name: string): string | undefined => {
  if (!bindingForm.test(name)) {
    return "Expected up to 64 letters, digits and underscores, with a letter first"
  }
  return isReserved(name) ? reservedMessage : undefined
}

/** Returns the reason why a module cannot have this name, or undefined. */
export const moduleNameIssue = (name: string): string | undefined => {
  if (name.length > functions.moduleNameMaxCharacters) {
    return `Expected at most ${functions.moduleNameMaxCharacters} characters`
  }
  if (!isStorable(name) || /[\p{Cc}\\:?#%]/u.test(name)) {
    return "Expected a path without control characters, backslashes, and the characters : ? # %"
  }
  if (name.normalize("NFC") !== name) return "Expected the composed form of Unicode (NFC)"
  if (name.split("/").some((part) => part === "" || part === "." || part === "..")) {
    return 'Expected a relative path without empty segments, and none that is "." or ".."'
  }
  return /^(?:__)?svc[-_./]/i.test(name) ? reservedMessage : undefined
}

const fires = (cron: Cron.Cron): boolean => {
  try {
    Cron.next(cron, 0)
    return true
  } catch {
    return false
  }
}

/** Returns the reason why a cron is refused, or undefined. */
export const cronIssue = (cron: string): string | undefined => {
  if (cron.length > functions.cronMaxCharacters) {
    return `Expected at most ${functions.cronMaxCharacters} characters`
  }
  if (cron.split(" ").length !== 5) {
    return "Expected five fields: minute, hour, day of the month, month, day of the week"
  }
  const parsed = Cron.parse(cron, "UTC")
  if (Result.isFailure(parsed)) return parsed.failure.message
  return fires(parsed.success) ? undefined : "This time never comes"
}

function* moduleIssues({ mainModule, modules }: NewFunctionsDeployment): Generator<Issue> {
  const names = new Set<string>()
  for (const [index, { name }] of modules.entries()) {
    const path = `modules[${index}].name`
    const message = moduleNameIssue(name)
    if (message !== undefined) yield { path, message }
    const folded = name.toLowerCase()
    if (names.has(folded)) {
      yield { path, message: "Another module has this name, or one that differs only in case" }
    }
    names.add(folded)
  }
  if (modules.find(({ name }) => name === mainModule)?.type !== "esm") {
    yield { path: "mainModule", message: "Expected the name of a module of type esm" }
  }
}

function* bindingIssues(
  { bindings = [] }: NewFunctionsDeployment,
  names: Set<string>
): Generator<Issue> {
  for (const [index, { class: className, name, type }] of bindings.entries()) {
    const path = `bindings[${index}].name`
    const message = type === "secret" ? secretNameIssue(name) : bindingNameIssue(name)
    if (message !== undefined) yield { path, message }
    if (names.has(name)) yield { path, message: "Another binding has this name" }
    names.add(name)
    const isClass = classForm.test(className ?? "")
    if (type === "durableObject" && !isClass) {
      const expected = "Expected the name of the exported class"
      yield { path: `bindings[${index}].class`, message: expected }
    }
    if (type !== "durableObject" && className !== undefined) {
      const expected = "Expected only with the type durableObject"
      yield { path: `bindings[${index}].class`, message: expected }
    }
  }
}

function* variableIssues(
  { vars = {} }: NewFunctionsDeployment,
  names: ReadonlySet<string>
): Generator<Issue> {
  const entries = Object.entries(vars)
  if (entries.length > functions.varsMax) {
    yield { path: "vars", message: `Expected at most ${functions.varsMax} variables` }
  }
  for (const [name, value] of entries) {
    const path = `vars.${name.slice(0, functions.nameMaxCharacters)}`
    const message = bindingNameIssue(name)
    if (message !== undefined) yield { path, message }
    if (names.has(name)) yield { path, message: "A binding has this name" }
    if (new TextEncoder().encode(value).length > functions.varMaxBytes) {
      yield { path, message: `Expected at most ${functions.varMaxBytes} bytes` }
    }
  }
}

function* cronIssues({ crons = [] }: NewFunctionsDeployment): Generator<Issue> {
  for (const [index, cron] of crons.entries()) {
    const path = `crons[${index}]`
    const message = cronIssue(cron)
    if (message !== undefined) yield { path, message }
    if (crons.indexOf(cron) < index) yield { path, message: "Expected each cron once" }
  }
}

/** The first issues of a deployment; none if it is well-formed. */
export const deploymentIssues = (deployment: NewFunctionsDeployment): ReadonlyArray<Issue> => {
  const names = new Set<string>()
  return [
    ...moduleIssues(deployment),
    ...bindingIssues(deployment, names),
    ...variableIssues(deployment, names),
    ...cronIssues(deployment)
  ].slice(0, functions.issuesMax)
}
