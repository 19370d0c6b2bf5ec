/** docs/fleet-api.md: the fields of the kinds of a hub, from their schemas. */
import { jsonSchema, type JsonSchema } from '../../src/core/json-schema.ts';
import { HUB_KINDS } from '../../src/fleet/hub/hub-kinds.ts';

const INTRODUCTION = `# Fields of the kinds of a hub

<!-- npm run docs writes this page from src/fleet/hub/hub-kinds.ts -->

\`apiVersion\` is \`fleet.curlew.dev/v1alpha1\`. \`curlew hub manifests\` prints the definitions, and \`kubectl explain\` shows the same
fields. [hub.md](hub.md) says how they work together; a folder of files has the fields of [fleets.md](fleets.md). Required fields are
in bold, and \`[]\` is a list.
`;

export function fleetApiPage(): string {
  const kinds = Object.entries(HUB_KINDS).map(([kind, { plural, short, scope, about, spec, status }]) => {
    const where = scope === 'Cluster' ? 'in no namespace' : 'in a namespace';
    const names = `\`kubectl get ${plural}\` or \`${short}\`, ${where}.`;
    return [
      `## ${kind}`,
      `${about} ${names}`,
      table('spec', jsonSchema(spec)),
      ...(status ? [table('status', jsonSchema(status))] : []),
    ].join('\n\n');
  });
  return `${[INTRODUCTION.trimEnd(), ...kinds].join('\n\n')}\n`;
}

function table(root: string, schema: JsonSchema): string {
  const rows = rowsOf(root, schema, false).slice(1);
  const rules = rulesOf(schema).map((message) => `- \`${root}\`: ${message}`);
  return [
    ['| field | type | meaning |', '| --- | --- | --- |', ...rows].join('\n'),
    ...(rules.length > 0 ? [rules.join('\n')] : []),
  ].join('\n\n');
}

function rowsOf(path: string, schema: JsonSchema, isRequired: boolean): readonly string[] {
  const {
    properties = {},
    items,
    required = [],
    description = '',
  } = schema as {
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly items?: JsonSchema;
    readonly required?: readonly string[];
    readonly description?: string;
  };
  const name = isRequired ? `**\`${path}\`**` : `\`${path}\``;
  const rules = path.includes('.') ? rulesOf(schema).map((message) => `Rule: ${message}.`) : [];
  const row = `| ${name} | ${typeOf(schema)} | ${[description, ...rules].join(' ').trim().replaceAll('|', '\\|')} |`;
  const below = items === undefined ? [] : rowsOf(`${path}[]`, items, false).slice(1);
  const fields = Object.entries(properties).flatMap(([key, one]) =>
    rowsOf(`${path}.${key}`, one, required.includes(key)),
  );
  return [row, ...below, ...fields];
}

function rulesOf(schema: JsonSchema): readonly string[] {
  const rules = (schema['x-kubernetes-validations'] ?? []) as readonly { readonly message: string }[];
  return rules.map(({ message }) => message);
}

function typeOf({ type, anyOf, enum: words, items, format, additionalProperties }: JsonSchema): string {
  if (words !== undefined) return (words as readonly string[]).map((word) => `\`${word}\``).join(', ');
  if (anyOf !== undefined) return 'number or percentage';
  if (items !== undefined) return `list of ${typeOf(items as JsonSchema)}s`;
  if (format === 'date-time') return 'time';
  if (type === 'object') return typeof additionalProperties === 'object' ? 'map' : 'object';
  return { string: 'text', integer: 'number', boolean: 'true or false' }[String(type)] ?? '';
}
