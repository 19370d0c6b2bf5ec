/**
 * Bills of materials as CycloneDX 1.6 (cyclonedx.org, ECMA-424). They do not depend on time, place or locale: their subject
 * and the version of curlew determine every byte.
 */
import { ComponentType, ExternalReferenceType, HashAlgorithm } from '@cyclonedx/cyclonedx-library/Enums';
import { Bom, Component as Model, ExternalReference, Metadata, Property } from '@cyclonedx/cyclonedx-library/Models';
import { JSON as Json, JsonSerializer } from '@cyclonedx/cyclonedx-library/Serialize';
import { Spec1dot6 } from '@cyclonedx/cyclonedx-library/Spec';
import { digestOf, hexOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { BUNDLED_TOOL, prefixOf } from '../../core/layout.ts';
import { refOf, type AddonJson } from '../../core/package.ts';
import { componentsOf, MAX_COMPONENTS, type Component } from './components.ts';
import type { Described, DescribedBundle } from './described.ts';
import { formatPurl } from './purl.ts';

export interface Sbom {
  readonly text: string;
  readonly serialNumber: string;
  /** Number of distinct components. */
  readonly components: number;
}

/**
 * The SBOM of a package: its components. Of a bundle: its packages, the components of each, and the tool; shared components
 * are listed once. `tool` is the version of curlew that writes it.
 */
export function formatSbom({ contents, packages, bundle }: Described, tool: string): Sbom {
  const subject = bundle === undefined ? packageModel(packages[0].addon) : bundleModel(bundle);
  const bom = new Bom({ metadata: metadataOf(subject, contents, tool) });
  const models = new Map<string, Model>();
  const addComponent = (owner: Model, ref: string, make: () => Model): Model => {
    const model = models.get(ref) ?? make();
    if (models.size === MAX_COMPONENTS && !models.has(ref)) {
      throw new CurlewError('PACKAGE_INVALID', `cannot create an SBOM: more than ${MAX_COMPONENTS} components`);
    }
    models.set(ref, model);
    owner.dependencies.add(model.bomRef);
    return model;
  };
  for (const { addon, ...rest } of packages) {
    const ref = prefixOf(refOf(addon));
    const owner =
      bundle === undefined ? subject : addComponent(subject, ref, () => packageModel(addon, sha256In(bundle, ref)));
    for (const one of componentsOf({ addon, ...rest })) addComponent(owner, one.purl, () => componentModel(one));
  }
  if (bundle?.tool !== undefined) {
    const { tool: digest, json } = bundle;
    addComponent(subject, BUNDLED_TOOL, () => toolModel(BUNDLED_TOOL, json.tool, digest));
  }
  for (const model of models.values()) bom.components.add(model);
  return { ...serialized(bom), components: models.size };
}

/** The text, with a serial number derived from it: different texts have different serial numbers. */
function serialized(bom: Bom): Pick<Sbom, 'text' | 'serialNumber'> {
  const serializer = new JsonSerializer(new Json.Normalize.Factory(Spec1dot6));
  // The library would sort by the locale of the machine.
  const options = { sortLists: false, space: 2 };
  const serialNumber = `urn:uuid:${uuidOf(digestOf(serializer.serialize(bom, options)))}`;
  bom.serialNumber = serialNumber;
  return { text: `${serializer.serialize(bom, options)}\n`, serialNumber };
}

/** A UUID of version 8 (RFC 9562) with the first bits of a digest. */
function uuidOf(digest: Digest): string {
  const hex = hexOf(digest);
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join('-');
}

function metadataOf(subject: Model, contents: Digest, tool: string): Metadata {
  const metadata = new Metadata({ component: subject });
  metadata.tools.components.add(toolModel(undefined, tool));
  metadata.properties.add(new Property('curlew:contents', contents));
  return metadata;
}

function toolModel(ref: string | undefined, version: string, digest?: Digest): Model {
  const model = new Model(ComponentType.Application, 'curlew', {
    version,
    ...(ref === undefined ? {} : { bomRef: ref }),
  });
  if (digest !== undefined) setDigest(model, digest);
  return model;
}

function bundleModel({ json: { release, arch, installer } }: DescribedBundle): Model {
  const model = new Model(ComponentType.Application, 'bundle', { bomRef: 'bundle', version: release });
  addProperties(model, { arch, installer });
  return model;
}

function packageModel(addon: AddonJson, sha256?: Digest): Model {
  const { name, version, arch, tree, tool, digest } = addon;
  const model = new Model(ComponentType.Application, name, {
    bomRef: prefixOf(refOf(addon)),
    version,
    purl: formatPurl({ type: 'generic', name, version, qualifiers: { arch } }),
  });
  if (sha256 !== undefined) setDigest(model, sha256);
  addProperties(model, { arch, digest, tool, tree });
  return model;
}

/** Digest of the package file from which the bundle was built. */
function sha256In({ json }: DescribedBundle, prefix: string): Digest | undefined {
  return [...json.packages, ...(json.beside ?? [])].find((one) => prefixOf(one) === prefix)?.sha256;
}

const TYPES: Readonly<Record<Component['kind'], ComponentType>> = {
  image: ComponentType.Container,
  'host package': ComponentType.Library,
  asset: ComponentType.File,
  'built file': ComponentType.File,
};

function componentModel({ kind, name, version, purl, digest, url }: Component): Model {
  const model = new Model(TYPES[kind], name, { bomRef: purl, purl });
  if (version !== undefined) model.version = version;
  setDigest(model, digest);
  if (url !== undefined) model.externalReferences.add(new ExternalReference(url, ExternalReferenceType.Distribution));
  return model;
}

function setDigest(model: Model, digest: Digest): void {
  model.hashes.set(HashAlgorithm['SHA-256'], hexOf(digest));
}

function addProperties(model: Model, properties: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(properties)) model.properties.add(new Property(`curlew:${name}`, value));
}
