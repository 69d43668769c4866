//! Types and constants of `hsa_ext_image.h`: images and samplers.

use crate::hsa_dim3_t;

handles! {
    /// An image on an agent.
    hsa_ext_image_t;
    /// A sampler on an agent.
    hsa_ext_sampler_t;
}

c_enum! {
    /// Shape of an image.
    hsa_ext_image_geometry_t: u32;
    BASE "HSA_EXT_IMAGE_" {
        /// One dimension.
        GEOMETRY_1D = 0;
        /// Two dimensions.
        GEOMETRY_2D = 1;
        /// Three dimensions.
        GEOMETRY_3D = 2;
        /// Array of one-dimensional layers.
        GEOMETRY_1DA = 3;
        /// Array of two-dimensional layers.
        GEOMETRY_2DA = 4;
        /// One dimension, in a linear buffer.
        GEOMETRY_1DB = 5;
        /// Two dimensions of depth values.
        GEOMETRY_2DDEPTH = 6;
        /// Array of two-dimensional layers of depth values.
        GEOMETRY_2DADEPTH = 7;
    }
}

c_enum! {
    /// Type of a component of an image element.
    hsa_ext_image_channel_type_t: u32;
    BASE "HSA_EXT_IMAGE_CHANNEL_TYPE_" {
        /// Signed normalised, 8 bits.
        SNORM_INT8 = 0;
        /// Signed normalised, 16 bits.
        SNORM_INT16 = 1;
        /// Unsigned normalised, 8 bits.
        UNORM_INT8 = 2;
        /// Unsigned normalised, 16 bits.
        UNORM_INT16 = 3;
        /// Unsigned normalised, 24 bits.
        UNORM_INT24 = 4;
        /// Unsigned normalised, 5 bits each.
        UNORM_SHORT_555 = 5;
        /// Unsigned normalised, 5, 6 and 5 bits.
        UNORM_SHORT_565 = 6;
        /// Unsigned normalised, 10 bits each.
        UNORM_SHORT_101010 = 7;
        /// Signed, 8 bits.
        SIGNED_INT8 = 8;
        /// Signed, 16 bits.
        SIGNED_INT16 = 9;
        /// Signed, 32 bits.
        SIGNED_INT32 = 10;
        /// Unsigned, 8 bits.
        UNSIGNED_INT8 = 11;
        /// Unsigned, 16 bits.
        UNSIGNED_INT16 = 12;
        /// Unsigned, 32 bits.
        UNSIGNED_INT32 = 13;
        /// Half precision.
        HALF_FLOAT = 14;
        /// Single precision.
        FLOAT = 15;
    }
}

/// [`hsa_ext_image_channel_type_t`] where C fixes the width of the field to 32 bits.
pub type hsa_ext_image_channel_type32_t = hsa_ext_image_channel_type_t;

c_enum! {
    /// Components of an image element, in order.
    hsa_ext_image_channel_order_t: u32;
    BASE "HSA_EXT_IMAGE_CHANNEL_ORDER_" {
        /// Alpha.
        A = 0;
        /// Red.
        R = 1;
        /// Red, unused.
        RX = 2;
        /// Red, green.
        RG = 3;
        /// Red, green, unused.
        RGX = 4;
        /// Red, alpha.
        RA = 5;
        /// Red, green, blue.
        RGB = 6;
        /// Red, green, blue, unused.
        RGBX = 7;
        /// Red, green, blue, alpha.
        RGBA = 8;
        /// Blue, green, red, alpha.
        BGRA = 9;
        /// Alpha, red, green, blue.
        ARGB = 10;
        /// Alpha, blue, green, red.
        ABGR = 11;
        /// Red, green, blue in sRGB.
        SRGB = 12;
        /// Red, green, blue in sRGB, unused.
        SRGBX = 13;
        /// Red, green, blue in sRGB, alpha.
        SRGBA = 14;
        /// Blue, green, red in sRGB, alpha.
        SBGRA = 15;
        /// Intensity.
        INTENSITY = 16;
        /// Luminance.
        LUMINANCE = 17;
        /// Depth.
        DEPTH = 18;
        /// Depth and stencil.
        DEPTH_STENCIL = 19;
    }
}

/// [`hsa_ext_image_channel_order_t`] where C fixes the width of the field to 32 bits.
pub type hsa_ext_image_channel_order32_t = hsa_ext_image_channel_order_t;

/// Type and order of an image element's components.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ext_image_format_t {
    /// Type.
    pub channel_type: hsa_ext_image_channel_type32_t,
    /// Order.
    pub channel_order: hsa_ext_image_channel_order32_t,
}

/// Shape, size and format of an image.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ext_image_descriptor_t {
    /// Shape.
    pub geometry: hsa_ext_image_geometry_t,
    /// Elements in a row.
    pub width: usize,
    /// Rows; zero where the shape has none.
    pub height: usize,
    /// Slices; zero where the shape has none.
    pub depth: usize,
    /// Layers; zero where the shape has none.
    pub array_size: usize,
    /// Elements.
    pub format: hsa_ext_image_format_t,
}

c_enum! {
    /// What an agent can do with images of a format; bits.
    hsa_ext_image_capability_t: u32;
    BASE "HSA_EXT_IMAGE_CAPABILITY_" {
        /// Nothing.
        NOT_SUPPORTED = 0x0;
        /// Read.
        READ_ONLY = 0x1;
        /// Write.
        WRITE_ONLY = 0x2;
        /// Read and write.
        READ_WRITE = 0x4;
        /// Atomics.
        READ_MODIFY_WRITE = 0x8;
        /// The data lie the same way on every such agent.
        ACCESS_INVARIANT_DATA_LAYOUT = 0x10;
    }
}

c_enum! {
    /// How an image's data lie in memory.
    hsa_ext_image_data_layout_t: u32;
    BASE "HSA_EXT_IMAGE_DATA_LAYOUT_" {
        /// The agent's way.
        OPAQUE = 0x0;
        /// Row after row.
        LINEAR = 0x1;
    }
}

/// Memory that an image's data need.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ext_image_data_info_t {
    /// Bytes.
    pub size: usize,
    /// Alignment.
    pub alignment: usize,
}

/// Part of an image, in elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ext_image_region_t {
    /// First element.
    pub offset: hsa_dim3_t,
    /// Number of elements.
    pub range: hsa_dim3_t,
}

c_enum! {
    /// What a sampler reads outside the image.
    hsa_ext_sampler_addressing_mode_t: u32;
    BASE "HSA_EXT_SAMPLER_ADDRESSING_MODE_" {
        /// Does not matter.
        UNDEFINED = 0;
        /// The edge.
        CLAMP_TO_EDGE = 1;
        /// The border colour.
        CLAMP_TO_BORDER = 2;
        /// The image again.
        REPEAT = 3;
        /// The image mirrored.
        MIRRORED_REPEAT = 4;
    }
}

/// [`hsa_ext_sampler_addressing_mode_t`] where C fixes the width of the field to 32 bits.
pub type hsa_ext_sampler_addressing_mode32_t = hsa_ext_sampler_addressing_mode_t;

c_enum! {
    /// Coordinates a sampler takes.
    hsa_ext_sampler_coordinate_mode_t: u32;
    BASE "HSA_EXT_SAMPLER_COORDINATE_MODE_" {
        /// Elements.
        UNNORMALIZED = 0;
        /// 0 to 1.
        NORMALIZED = 1;
    }
}

/// [`hsa_ext_sampler_coordinate_mode_t`] where C fixes the width of the field to 32 bits.
pub type hsa_ext_sampler_coordinate_mode32_t = hsa_ext_sampler_coordinate_mode_t;

c_enum! {
    /// What a sampler reads between elements.
    hsa_ext_sampler_filter_mode_t: u32;
    BASE "HSA_EXT_SAMPLER_FILTER_MODE_" {
        /// The nearest element.
        NEAREST = 0;
        /// A weighted mean.
        LINEAR = 1;
    }
}

/// [`hsa_ext_sampler_filter_mode_t`] where C fixes the width of the field to 32 bits.
pub type hsa_ext_sampler_filter_mode32_t = hsa_ext_sampler_filter_mode_t;

/// Describes a sampler.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ext_sampler_descriptor_t {
    /// Coordinates.
    pub coordinate_mode: hsa_ext_sampler_coordinate_mode32_t,
    /// Between elements.
    pub filter_mode: hsa_ext_sampler_filter_mode32_t,
    /// Outside.
    pub address_mode: hsa_ext_sampler_addressing_mode32_t,
}

layout! {
    LAYOUTS;
    BASE hsa_ext_image_t: 8, 8 { handle: 0 }
    BASE hsa_ext_sampler_t: 8, 8 { handle: 0 }
    BASE hsa_ext_image_format_t: 8, 4 { channel_type: 0, channel_order: 4 }
    BASE hsa_ext_image_descriptor_t: 48, 8 {
        geometry: 0, width: 8, height: 16, depth: 24, array_size: 32, format: 40,
    }
    BASE hsa_ext_image_data_info_t: 16, 8 { size: 0, alignment: 8 }
    BASE hsa_ext_image_region_t: 24, 4 { offset: 0, range: 12 }
    BASE hsa_ext_sampler_descriptor_t: 12, 4 { coordinate_mode: 0, filter_mode: 4, address_mode: 8 }
}

enumerations! {
    hsa_ext_image_geometry_t,
    hsa_ext_image_channel_type_t,
    hsa_ext_image_channel_order_t,
    hsa_ext_image_capability_t,
    hsa_ext_image_data_layout_t,
    hsa_ext_sampler_addressing_mode_t,
    hsa_ext_sampler_coordinate_mode_t,
    hsa_ext_sampler_filter_mode_t,
}
