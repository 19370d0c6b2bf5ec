/** Checks that a schema.json can validate settings. Pure. */
import { Ajv } from 'ajv';
import { asError } from '../../core/errors.ts';
import { shortened } from '../../core/shortened.ts';
import type { Find } from '../rules.ts';

const MAX_MESSAGE = 300;
/** Add-ons have few settings, and compile time grows with the size of a schema. */
const MAX_COMPILED = 128 * 1024;

/** `schema` is the parsed file. References to other files are not followed. */
export function checkSettingsSchema(file: string, schema: Readonly<Record<string, unknown>>, find: Find): void {
  const ajv = new Ajv({ strict: false, logger: false, validateFormats: false });
  try {
    if (ajv.validateSchema(schema) === true) {
      if (JSON.stringify(schema).length < MAX_COMPILED) ajv.compile(schema);
      return;
    }
    reportInvalid(ajv.errorsText(ajv.errors, { dataVar: '' }), file, find);
  } catch (error) {
    reportInvalid(asError(error).message, file, find);
  }
}

function reportInvalid(message: string, file: string, find: Find): void {
  const place = { file, line: 1, column: 1, length: 1 };
  find('addon/schema-invalid', place, `not a JSON Schema: ${shortened(message, MAX_MESSAGE)}`);
}
