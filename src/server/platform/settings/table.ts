/**
 * Tables of settings. Each entry is the one place of a setting: its environment variable, schema, default
 * and meaning. The decoding, the types and the page `docs/operations/settings.md` follow from it.
 */
import { Config, Option, Record, Schema } from "effect"

export interface Setting<
  Name extends string = string,
  S extends Schema.Constraint = Schema.Constraint
> {
  readonly variable: Name
  /** Decodes the text of the variable. */
  readonly schema: S
  /** The text for a variable that is absent; undefined: the setting is absent, too. */
  readonly default: string | undefined
  /** The default as the page shows it, if not by its text. */
  readonly shown?: string | undefined
  /** What the setting does, in Markdown. */
  readonly meaning: string
}

/** Settings by the name that they have in the code. */
export type Table = Readonly<Record<string, Setting>>

type Tag<A> = (text: TemplateStringsArray, ...values: ReadonlyArray<number>) => A

/** The lines of a template as one. */
const meaningOf: Tag<string> = (text, ...values) =>
  String.raw({ raw: text }, ...values)
    .trim()
    .replaceAll(/\n\s*/g, " ")

/** A setting with a default; its meaning follows as a template. */
export const setting =
  <const Name extends string, S extends Schema.Constraint>(
    variable: Name,
    schema: S,
    initial: string | number,
    shown?: string
  ): Tag<Setting<Name, S>> =>
  (...meaning) => ({
    variable,
    schema,
    default: String(initial),
    shown,
    meaning: meaningOf(...meaning)
  })

/** A setting that may be absent; its meaning follows as a template. */
export const optional =
  <const Name extends string, S extends Schema.Constraint>(
    variable: Name,
    schema: S
  ): Tag<Setting<Name, Schema.optionalKey<S>>> =>
  (...meaning) => ({
    variable,
    schema: Schema.optionalKey(schema),
    default: undefined,
    meaning: meaningOf(...meaning)
  })

type SettingIn<T extends Table> = T extends Table ? T[keyof T] : never

type FieldsOf<S extends Setting> = { readonly [Each in S as Each["variable"]]: Each["schema"] }

/** The variables of a table, decoded. */
export type EnvironmentOf<T extends Table> = Schema.Struct.Type<FieldsOf<SettingIn<T>>>

type ValuesOf<T extends Table> = {
  readonly [K in keyof T]: EnvironmentOf<T>[T[K]["variable"] & keyof EnvironmentOf<T>]
}

/** The text of a variable: trimmed, and the default for an empty or absent one. */
export const textOf = ({ default: initial, variable }: Setting) =>
  Config.map(Config.option(Config.String(variable)), (value) => {
    const text = Option.getOrElse(value, () => "").trim()
    return text === "" ? initial : text
  })

/** The settings of these tables. */
export const settingsIn = <T extends Table>(tables: ReadonlyArray<T>) =>
  tables.flatMap((table): ReadonlyArray<unknown> => Object.values(table)) as ReadonlyArray<
    SettingIn<T>
  >

/** The fields of a struct that decodes the variables of these settings. */
export const fieldsOf = <S extends Setting>(settings: ReadonlyArray<S>) =>
  Object.fromEntries(settings.map(({ schema, variable }) => [variable, schema])) as FieldsOf<S>

/** The values of a table, by the names of its settings. */
export const valuesOf = <T extends Table>(table: T, env: EnvironmentOf<T>) => {
  const byVariable: Readonly<Record<string, unknown>> = env
  return Record.map(table, ({ variable }) => byVariable[variable]) as ValuesOf<T>
}

/** What is wrong with a variable. */
export interface Issue {
  readonly path: readonly [variable: string]
  readonly issue: string
}

/** Returns an issue for each absent one of variables that are set together or not at all. */
export const incomplete = <const Name extends string>(
  env: Readonly<Partial<Record<Name, unknown>>>,
  names: ReadonlyArray<Name>
): ReadonlyArray<Issue> => {
  const absent = names.filter((name) => env[name] === undefined)
  if (absent.length === names.length) return []
  return absent.map((name) => ({
    path: [name],
    issue: `must be set together with ${names.filter((each) => each !== name).join(" and ")}`
  }))
}
