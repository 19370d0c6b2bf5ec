/** Form fields for the settings of an add-on, made from their schema. Pure. */
import { fieldsOf as objectFields, isObject } from '../../../core/json.ts';
import { SETTINGS, type SettingKind } from '../../../spec/settings.ts';
import { COMMON, isChoosable, type Plain, type SettingValue } from './choice.ts';
import { html, type Html } from './html.ts';

/** One setting with a form field. */
interface Field {
  readonly name: string;
  readonly about: string;
  /** A list has the values to choose from. */
  readonly control: 'integer' | 'number' | 'text' | 'list' | readonly Plain[];
  readonly initial: Plain | undefined;
  readonly required: boolean;
  readonly least: unknown;
  readonly most: unknown;
}

export interface PageFields {
  readonly fields: readonly Field[];
  /** Settings that have no field: secrets, and values that are not plain. */
  readonly others: readonly string[];
}

const MAX_FIELDS = 100;
const MAX_ABOUT = 400;
const MAX_OPTIONS = 100;
const KINDS: Readonly<Record<SettingKind, unknown>> = {
  switch: { type: 'boolean' },
  text: { type: 'string' },
  integer: { type: 'integer' },
  texts: { type: 'array', items: { type: 'string' } },
  commands: {},
  document: {},
};

/** The fields of a key of the spec: those in the schema of its package, then those that kURL knows. */
export function settingFields(specName: string, schema: unknown): PageFields {
  const { properties, required } = objectFields(schema);
  const own = objectFields(properties);
  const known = SETTINGS.filter((one) => one.specName === specName && !Object.hasOwn(own, one.field));
  const rows = [...Object.entries(own), ...known.map(({ field, kind }) => [field, KINDS[kind]] as const)]
    .filter(([name]) => !COMMON.includes(name))
    .slice(0, MAX_FIELDS);
  const made = rows.map(([name, part]) => {
    const isRequired = Array.isArray(required) && required.includes(name);
    return { name, field: isChoosable(specName, name) ? fieldOf(name, part, isRequired) : undefined };
  });
  return {
    fields: made.flatMap(({ field }) => field ?? []),
    others: made.flatMap(({ name, field }) => (field === undefined ? [name.slice(0, 100)] : [])),
  };
}

function fieldOf(name: string, part: unknown, required: boolean): Field | undefined {
  if (!isObject(part)) return undefined;
  if (part['format'] === 'password' || part['writeOnly'] === true) return undefined;
  const control = controlOf(part);
  if (control === undefined) return undefined;
  const texts = [part['title'], part['description']].filter((text) => typeof text === 'string');
  const about = [...new Set(texts)].join(': ').slice(0, MAX_ABOUT);
  const initial = isPlain(part['default']) ? part['default'] : undefined;
  return { name, about, control, initial, required, least: part['minimum'], most: part['maximum'] };
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function controlOf(part: Readonly<Record<string, unknown>>): Field['control'] | undefined {
  const { enum: options, items } = part;
  // The parts of one list have one type, as the name of the field says how its value is read.
  if (Array.isArray(options)) {
    const plain = options.filter(isPlain).slice(0, MAX_OPTIONS);
    return new Set(plain.map((one) => typeof one === 'string')).size === 1 ? plain : undefined;
  }
  const [type] = [part['type']].flat().filter((one) => one !== 'null');
  if (type === 'boolean') return [true, false];
  if (type === 'integer' || type === 'number') return type;
  if (type === 'string') return 'text';
  return type === 'array' && objectFields(items)['type'] === 'string' ? 'list' : undefined;
}

/** A labeled form field with this value. */
export function renderField(specName: string, field: Field, value: SettingValue | undefined): Html {
  const { name, about, required } = field;
  const id = `${specName}:${name}`;
  return html`<div class="field">
    <label for="${id}"><code>${name}</code>${required && html` <em>required</em>`}</label>
    ${controlHtml(id, field, value)} ${about !== '' && html`<p class="about" id="${id}:about">${about}</p>`}
  </div>`;
}

function controlHtml(
  id: string,
  { control, about, initial, least, most }: Field,
  value: SettingValue | undefined,
): Html {
  const described = about !== '' && html` aria-describedby="${id}:about"`;
  const shown = initial === undefined ? undefined : `default: ${String(initial).slice(0, 100)}`;
  if (typeof control === 'object') {
    const options = control.map(
      (one) => html`<option value="${String(one)}" ${one === value && html` selected`}>${String(one)}</option>`,
    );
    return html`<select id="${id}" name="${id}${typeof control[0] === 'string' && ':text'}" ${described}>
      <option value="">${shown ?? 'not set'}</option>
      ${options}
    </select>`;
  }
  const text = typeof value === 'object' ? value.join('\n') : String(value ?? '');
  if (control === 'list')
    return html`<textarea id="${id}" name="${id}:list" rows="2" placeholder="one on each line" ${described}>
${text}</textarea>`;
  const step = control === 'integer' ? 1 : 'any';
  const kind =
    control === 'text'
      ? html`type="text"`
      : html`type="number"
        step="${step}"${typeof least === 'number' && html` min="${least}"`}${typeof most === 'number' && html` max="${most}"`}`;
  const suffix = control === 'text' && ':text';
  return html`<input ${kind} id="${id}" name="${id}${suffix}" value="${text}" placeholder="${shown}" ${described} />`;
}
