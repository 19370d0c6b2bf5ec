/** Options of several commands. */
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import type { OptionSpecs } from './command.ts';
import { age, arch, choice, folders, osImage, wholeNumber } from './values.ts';

export const NETWORK_OPTIONS = {
  'registry-mirror': {
    type: 'string',
    multiple: true,
    value: 'HOST=MIRROR',
    help: 'use MIRROR (host:port[/project]) before registry HOST; can be repeated',
    group: 'Network options',
  },
  'allow-http': {
    type: 'string',
    multiple: true,
    value: 'HOST',
    help: 'use plain HTTP for this host; can be repeated',
    group: 'Network options',
  },
  'trust-realm': {
    type: 'string',
    multiple: true,
    value: 'HOST',
    help: "allow this host to receive a registry's credentials; can be repeated",
    group: 'Network options',
  },
  'any-platform': {
    type: 'string',
    multiple: true,
    value: 'IMAGE',
    help: 'accept this image although it names no platform; can be repeated',
    group: 'Network options',
  },
  'ca-file': {
    type: 'string',
    value: 'FILE',
    help: 'additional trusted certificate authorities, in PEM',
    group: 'Network options',
  },
  config: {
    type: 'string',
    value: 'FILE',
    help: 'configuration file (default: ~/.config/curlew/config.json)',
    group: 'Network options',
  },
} satisfies OptionSpecs;

/** Options of commands that fetch, but do not use registries. */
export const WEB_OPTIONS = {
  'allow-http': NETWORK_OPTIONS['allow-http'],
  'ca-file': NETWORK_OPTIONS['ca-file'],
  config: NETWORK_OPTIONS.config,
} satisfies OptionSpecs;

/** Options of commands with a store. */
export const STORE_OPTIONS = {
  's3-endpoint': {
    type: 'string',
    value: 'URL',
    help: 'server other than AWS (default: $AWS_ENDPOINT_URL_S3)',
    group: 'S3 options',
  },
  's3-region': {
    type: 'string',
    value: 'REGION',
    help: 'region of the bucket (default: $AWS_REGION)',
    group: 'S3 options',
  },
  's3-profile': {
    type: 'string',
    value: 'NAME',
    help: 'profile with the credentials (default: $AWS_PROFILE)',
    group: 'S3 options',
  },
  's3-path-style': {
    type: 'boolean',
    help: 'put the bucket in the path instead of the host name (default with an endpoint)',
    group: 'S3 options',
  },
  'ca-file': NETWORK_OPTIONS['ca-file'],
  config: NETWORK_OPTIONS.config,
} satisfies OptionSpecs;

const BACKEND_OPTIONS = {
  'packages-by': {
    type: 'string',
    read: choice('container', 'host'),
    value: 'BACKEND',
    help: 'fetch host packages in a container or on the host (default: container, if a Docker engine responds)',
  },
  builder: {
    type: 'string',
    multiple: true,
    read: osImage,
    value: 'OS=IMAGE',
    help: "builder image for an operating system's packages",
  },
  'container-limit': {
    type: 'string',
    read: wholeNumber,
    value: 'MINUTES',
    help: 'time limit of a container (default: 60)',
  },
  'container-network': { type: 'string', value: 'NAME', help: "the engine's network for containers, such as host" },
} satisfies OptionSpecs;

export const BUILD_OPTIONS = {
  out: { type: 'string', value: 'DIR', help: 'folder for packages (default: out, next to addons)' },
  arch: { type: 'string', read: arch, value: 'ARCH', help: 'amd64 or arm64 (default: amd64)' },
  'image-format': {
    type: 'string',
    read: choice('oci', 'docker-archive'),
    value: 'FORM',
    help: 'oci (default) or docker-archive, as in kURL',
  },
  'from-engine': { type: 'boolean', help: 'read images that no registry has from the Docker engine' },
  'allow-outside-files': { type: 'boolean', help: 'pack files that Manifests name outside their repository' },
  jobs: { type: 'string', read: wholeNumber, short: 'j', value: 'N', help: 'concurrent add-ons (default: 4)' },
  cache: { type: 'string', value: 'DIR', help: 'folder for unfinished downloads' },
  locked: { type: 'boolean', help: 'fail if anything differs from the committed Manifest.lock' },
  'update-lock': { type: 'boolean', help: 'write the current resolution to Manifest.lock, next to the Manifest' },
  ...BACKEND_OPTIONS,
  ...NETWORK_OPTIONS,
} satisfies OptionSpecs;

/** Options of every command that reads a release. */
export const KEY_OPTIONS = {
  key: {
    type: 'string',
    multiple: true,
    value: 'FILE',
    help: 'reject anything not signed with this public key; can be repeated',
    group: 'Signature options',
  },
  'require-signed': {
    type: 'boolean',
    help: 'fail without a key in --key or the configuration',
    group: 'Signature options',
  },
} satisfies OptionSpecs;

/** Options of commands that read bundles of other publishers. */
export const SIGNED_OPTIONS = {
  ...KEY_OPTIONS,
  signature: {
    type: 'string',
    value: 'FILE',
    help: 'the signature (default: .sigstore.json next to the file)',
    group: 'Signature options',
  },
  'signed-as': {
    type: 'string',
    value: 'NAME',
    help: 'reject signatures with another name',
    group: 'Signature options',
  },
  'require-statement': {
    type: 'boolean',
    help: 'reject signatures that cover no name, version or time',
    group: 'Signature options',
  },
} satisfies OptionSpecs;

/** Option of commands that check for downgrades, but do not install. */
export const DOWNGRADE_OPTION = {
  'allow-downgrade': {
    type: 'boolean',
    help: 'accept a signed version older than one seen before',
    group: 'Signature options',
  },
} satisfies OptionSpecs;

/** Options of commands that make a release current. */
export const MAKE_CURRENT = {
  'make-current': { type: 'boolean', help: 'allow a release that is older than the current one' },
} satisfies OptionSpecs;

/** Options of commands that create a release. */
export const SIGNER_OPTIONS = {
  sign: {
    type: 'string',
    value: 'FILE',
    help: 'sign the release with this private key from curlew keygen',
    group: 'Signature options',
  },
  expires: {
    type: 'string',
    read: age,
    value: 'TIME',
    help: 'with --sign: validity as the current release (default: 90d)',
    group: 'Signature options',
  },
} satisfies OptionSpecs;

/** Options of commands that read an install folder. */
export const FOLDER_OPTIONS = {
  'install-dir': { type: 'string', value: 'DIR', help: `install folder (default: ${INSTALL_DIRECTORY})` },
  root: { type: 'string', value: 'DIR', help: 'the folder of a trial with --root' },
} satisfies OptionSpecs;

/** Options of commands with a path or address of a package or bundle. */
export const ANYWHERE_OPTIONS = { ...WEB_OPTIONS, ...STORE_OPTIONS } satisfies OptionSpecs;

/** Options of commands that write parts. */
export const PARTS_OPTIONS = {
  to: {
    type: 'string',
    multiple: true,
    read: folders,
    value: 'FOLDER[,FOLDER…]',
    help: 'write parts to these media, filled one after the other',
  },
} satisfies OptionSpecs;

/** Option of commands that check settings. */
export const SETTINGS_OPTION = {
  'allow-invalid-settings': {
    type: 'boolean',
    help: 'accept a spec with settings that the packages reject; the spec of a site must fix them',
  },
} satisfies OptionSpecs;
