/** The shape of a channel, for editors; `npm run docs` publishes it as docs/schemas/channel.schema.json. */
import { CHANNEL_API_VERSION } from '../../src/cluster/channel/channel.ts';
import { DOCUMENTS } from '../../src/cluster/channel/channel-fields.ts';
import { jsonSchema, type JsonSchema } from '../../src/core/json-schema.ts';

const { properties, ...document } = jsonSchema(DOCUMENTS.Channel);

export const CHANNEL_SCHEMA: JsonSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Channel: which add-on versions fit which Kubernetes',
  ...document,
  required: ['apiVersion', 'kind'],
  properties: { ...(properties as JsonSchema), apiVersion: { const: CHANNEL_API_VERSION }, kind: { const: 'Channel' } },
};
