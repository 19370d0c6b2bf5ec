/** The shapes of the documents of a fleet, for editors; `npm run docs` publishes them in docs/schemas. */
import { KINDS } from '../../src/fleet/schema.ts';
import { jsonSchema, type JsonSchema } from '../../src/core/json-schema.ts';

const $schema = 'http://json-schema.org/draft-07/schema#';

export const CLUSTER_SCHEMA: JsonSchema = {
  $schema,
  title: 'Cluster: a cluster of a fleet',
  ...jsonSchema(KINDS.Cluster),
};

export const FLEET_ADDON_SCHEMA: JsonSchema = {
  $schema,
  title: 'FleetAddon: an add-on, and the clusters that it is for',
  ...jsonSchema(KINDS.FleetAddon),
};
