/** Problems and completions of a config document, by the schema at `/v1/config/schema.json`. */
import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete"
import type { Diagnostic } from "@codemirror/lint"
import {
  type CompletionItem,
  DiagnosticSeverity,
  getLanguageService,
  type LanguageService,
  TextDocument
} from "vscode-json-languageservice"

const schemaPath = "/v1/config/schema.json"
const documentUri = "config://document.json"

/** The language service for one editor. */
export interface Documents {
  readonly problems: (text: string) => Promise<ReadonlyArray<Found>>
  readonly completions: (text: string, at: number) => Promise<ReadonlyArray<CompletionItem>>
  readonly document: (text: string) => TextDocument
}

interface Found extends Diagnostic {
  readonly severity: "error" | "warning"
}

const start = async (): Promise<LanguageService> => {
  const service = getLanguageService({})
  const schema = await (await fetch(schemaPath)).json()
  service.configure({
    schemas: [{ uri: schemaPath, fileMatch: [documentUri], schema }],
    validate: true
  })
  return service
}

export const makeDocuments = (): Documents => {
  const started = start()
  const document = (text: string) => TextDocument.create(documentUri, "json", 0, text)
  return {
    document,
    problems: async (text) => {
      const service = await started
      const given = document(text)
      const found = await service.doValidation(given, service.parseJSONDocument(given))
      return found.map(({ message, range, severity }) => ({
        from: given.offsetAt(range.start),
        to: given.offsetAt(range.end),
        message: typeof message === "string" ? message : message.value,
        severity: severity === DiagnosticSeverity.Error ? "error" : "warning"
      }))
    },
    completions: async (text, at) => {
      const service = await started
      const given = document(text)
      const list = await service.doComplete(
        given,
        given.positionAt(at),
        service.parseJSONDocument(given)
      )
      return list?.items ?? []
    }
  }
}

/** Returns the text of a snippet, with the default texts of its placeholders. */
const plainText = (text: string): string =>
  text.replaceAll(/\$\{\d+:([^}]*)\}/g, "$1").replaceAll(/\$\d+|\$\{\d+\}/g, "")

/** A source of completions for the editor. */
export const completionsWith =
  (documents: Documents) =>
  async ({ explicit, pos, state }: CompletionContext): Promise<CompletionResult | null> => {
    const text = state.doc.toString()
    if (!explicit && !/["\w]/.test(text.slice(pos - 1, pos))) return null
    const items = await documents.completions(text, pos)
    if (items.length === 0) return null
    const given = documents.document(text)
    return {
      from: pos,
      filter: false,
      options: items.map((item) => ({
        label: item.label,
        ...(typeof item.documentation === "string" ? { info: item.documentation } : {}),
        apply: (view) => {
          const edit = item.textEdit
          if (edit === undefined || !("range" in edit)) return
          const from = given.offsetAt(edit.range.start)
          const to = given.offsetAt(edit.range.end)
          view.dispatch({ changes: { from, to, insert: plainText(edit.newText) } })
        }
      }))
    }
  }
