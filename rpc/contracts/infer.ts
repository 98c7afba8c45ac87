/** Types of data by their schemas, of a config that TypeScript knows to its last literal. */

type Names<Required> = Required extends ReadonlyArray<infer Name> ? Name : never

type Members<Properties, Required, Schemas> = {
  readonly [Name in keyof Properties as Name extends Required ? Name : never]: DataOf<
    Properties[Name],
    Schemas
  >
} & {
  readonly [Name in keyof Properties as Name extends Required ? never : Name]?: DataOf<
    Properties[Name],
    Schemas
  >
}

/** Joins the members of an object, so that editors show one type. */
type Flat<Object> = { [Name in keyof Object]: Object[Name] }

type ObjectOf<Schema, Schemas> = Flat<
  Members<
    Schema extends { readonly properties: infer Properties } ? Properties : Record<never, never>,
    Schema extends { readonly required: infer Required } ? Names<Required> : never,
    Schemas
  >
> &
  (Schema extends { readonly additionalProperties: false }
    ? unknown
    : { readonly [name: string]: unknown })

type OfType<Type, Schema, Schemas> = Type extends "string"
  ? string
  : Type extends "number" | "integer"
    ? number
    : Type extends "boolean"
      ? boolean
      : Type extends "null"
        ? null
        : Type extends "array"
          ? ReadonlyArray<
              Schema extends { readonly items: infer Items } ? DataOf<Items, Schemas> : unknown
            >
          : Type extends "object"
            ? ObjectOf<Schema, Schemas>
            : unknown

/** The data that fits a schema; `unknown` where the schema's literals are not known. */
export type DataOf<Schema, Schemas> = Schema extends { readonly $ref: infer Name }
  ? Name extends keyof Schemas
    ? DataOf<Schemas[Name], Schemas>
    : unknown
  : Schema extends { readonly oneOf: ReadonlyArray<infer Form> }
    ? Form extends unknown
      ? DataOf<Form, Schemas>
      : never
    : Schema extends { readonly const: infer Value }
      ? Value
      : Schema extends { readonly enum: ReadonlyArray<infer Value> }
        ? Value
        : Schema extends { readonly type: ReadonlyArray<infer Type> }
          ? OfType<Type, Schema, Schemas>
          : Schema extends { readonly type: infer Type }
            ? OfType<Type, Schema, Schemas>
            : unknown

/** The data of a message: one that may be null may be left out. */
export type MessageDataOf<Schema, Schemas> =
  DataOf<Schema, Schemas> extends infer Data
    ? Data | (null extends Data ? undefined : never)
    : never
