/** The JSON Schema of a valibot schema: objects, lists, texts, numbers, words, flags and what one of them may be. Pure. */
import type { GenericSchema, ObjectEntries } from 'valibot';

export interface JsonSchema {
  readonly [key: string]: unknown;
}

/** The parts of valibot's schemas that describe what they accept. */
interface Described {
  readonly type: string;
  readonly expects: string | null;
  readonly message?: unknown;
  readonly pipe?: readonly Step[];
  readonly entries?: ObjectEntries;
  readonly wrapped?: GenericSchema;
  readonly item?: GenericSchema;
  readonly literal?: unknown;
  /** Words, or schemas of which one must fit. */
  readonly options?: readonly string[] | readonly GenericSchema[];
  readonly getter?: (input: unknown) => GenericSchema;
}

interface Step extends Described {
  readonly requirement?: unknown;
  readonly metadata?: JsonSchema;
  /** Schema of each value of an object with any keys. */
  readonly values?: GenericSchema;
}

/** Parts without a description, such as a check, are left out. Metadata become keywords, such as `required`. */
export function jsonSchema(schema: GenericSchema): JsonSchema {
  const described = schema as GenericSchema & Described;
  const { type, pipe, entries, wrapped, item, literal, options, getter } = described;
  if (pipe !== undefined) return pipe.map(ofStep).reduce(joined, {});
  if (wrapped !== undefined) return jsonSchema(wrapped);
  if (getter !== undefined) return { anyOf: [getter('auto'), getter([])].map(jsonSchema) };
  if (entries !== undefined) {
    const properties = Object.entries(entries).map(([key, one]) => [key, jsonSchema(one as GenericSchema)] as const);
    const open = type === 'object' ? {} : { additionalProperties: false };
    const required = Object.entries(entries).flatMap(([key, one]) => (one.type.endsWith('optional') ? [] : [key]));
    const needs = required.length === 0 ? {} : { required };
    return { type: 'object', ...open, ...needs, properties: Object.fromEntries(properties) };
  }
  if (item !== undefined) return { type: 'array', items: jsonSchema(item) };
  if (literal !== undefined) return { const: literal };
  if (type === 'union') return { anyOf: (options as readonly GenericSchema[]).map(jsonSchema) };
  if (options !== undefined) return { enum: options };
  if (type === 'custom') return { type: 'object' };
  return ['string', 'boolean', 'number', 'integer'].includes(type) ? { type } : {};
}

/** Later keywords replace earlier ones, but what is said about both is said. */
function joined(before: JsonSchema, step: JsonSchema): JsonSchema {
  const texts = [step['description'], before['description']].filter((text) => typeof text === 'string');
  return { ...before, ...step, ...(texts.length > 0 && { description: [...new Set(texts)].join(' ') }) };
}

function ofStep(step: Step): JsonSchema {
  if (step.metadata !== undefined) return step.metadata;
  if (step.values !== undefined) return { additionalProperties: jsonSchema(step.values) };
  if (step.type === 'min_value') return { minimum: step.requirement };
  if (step.requirement instanceof RegExp && typeof step.message === 'string')
    return {
      description: `${step.message[0]?.toUpperCase()}${step.message.slice(1)}.`,
      pattern: step.requirement.source,
    };
  return jsonSchema(step as unknown as GenericSchema);
}
