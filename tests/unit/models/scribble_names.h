// Parameters of the original's nets with 50 layers and 21 classes, in their
// order: name and shape, or "name: norm channels" for the five tensors of a
// batch normalisation.
#pragma once

namespace lockstep::testing {

inline constexpr const char* kScribbleTrunk = R"(
conv1.weight 64x3x7x7
bn1: norm 64
layer1.0.conv1.weight 64x64x1x1
layer1.0.bn1: norm 64
layer1.0.conv2.weight 64x64x3x3
layer1.0.bn2: norm 64
layer1.0.conv3.weight 256x64x1x1
layer1.0.bn3: norm 256
layer1.0.downsample.0.weight 256x64x1x1
layer1.0.downsample.1: norm 256
layer1.1.conv1.weight 64x256x1x1
layer1.1.bn1: norm 64
layer1.1.conv2.weight 64x64x3x3
layer1.1.bn2: norm 64
layer1.1.conv3.weight 256x64x1x1
layer1.1.bn3: norm 256
layer1.2.conv1.weight 64x256x1x1
layer1.2.bn1: norm 64
layer1.2.conv2.weight 64x64x3x3
layer1.2.bn2: norm 64
layer1.2.conv3.weight 256x64x1x1
layer1.2.bn3: norm 256
layer2.0.conv1.weight 128x256x1x1
layer2.0.bn1: norm 128
layer2.0.conv2.weight 128x128x3x3
layer2.0.bn2: norm 128
layer2.0.conv3.weight 512x128x1x1
layer2.0.bn3: norm 512
layer2.0.downsample.0.weight 512x256x1x1
layer2.0.downsample.1: norm 512
layer2.1.conv1.weight 128x512x1x1
layer2.1.bn1: norm 128
layer2.1.conv2.weight 128x128x3x3
layer2.1.bn2: norm 128
layer2.1.conv3.weight 512x128x1x1
layer2.1.bn3: norm 512
layer2.2.conv1.weight 128x512x1x1
layer2.2.bn1: norm 128
layer2.2.conv2.weight 128x128x3x3
layer2.2.bn2: norm 128
layer2.2.conv3.weight 512x128x1x1
layer2.2.bn3: norm 512
layer2.3.conv1.weight 128x512x1x1
layer2.3.bn1: norm 128
layer2.3.conv2.weight 128x128x3x3
layer2.3.bn2: norm 128
layer2.3.conv3.weight 512x128x1x1
layer2.3.bn3: norm 512
layer3.0.conv1.weight 256x512x1x1
layer3.0.bn1: norm 256
layer3.0.conv2.weight 256x256x3x3
layer3.0.bn2: norm 256
layer3.0.conv3.weight 1024x256x1x1
layer3.0.bn3: norm 1024
layer3.0.downsample.0.weight 1024x512x1x1
layer3.0.downsample.1: norm 1024
layer3.1.conv1.weight 256x1024x1x1
layer3.1.bn1: norm 256
layer3.1.conv2.weight 256x256x3x3
layer3.1.bn2: norm 256
layer3.1.conv3.weight 1024x256x1x1
layer3.1.bn3: norm 1024
layer3.2.conv1.weight 256x1024x1x1
layer3.2.bn1: norm 256
layer3.2.conv2.weight 256x256x3x3
layer3.2.bn2: norm 256
layer3.2.conv3.weight 1024x256x1x1
layer3.2.bn3: norm 1024
layer3.3.conv1.weight 256x1024x1x1
layer3.3.bn1: norm 256
layer3.3.conv2.weight 256x256x3x3
layer3.3.bn2: norm 256
layer3.3.conv3.weight 1024x256x1x1
layer3.3.bn3: norm 1024
layer3.4.conv1.weight 256x1024x1x1
layer3.4.bn1: norm 256
layer3.4.conv2.weight 256x256x3x3
layer3.4.bn2: norm 256
layer3.4.conv3.weight 1024x256x1x1
layer3.4.bn3: norm 1024
layer3.5.conv1.weight 256x1024x1x1
layer3.5.bn1: norm 256
layer3.5.conv2.weight 256x256x3x3
layer3.5.bn2: norm 256
layer3.5.conv3.weight 1024x256x1x1
layer3.5.bn3: norm 1024
layer4.0.conv1.weight 512x1024x1x1
layer4.0.bn1: norm 512
layer4.0.conv2.weight 512x512x3x3
layer4.0.bn2: norm 512
layer4.0.conv3.weight 2048x512x1x1
layer4.0.bn3: norm 2048
layer4.0.downsample.0.weight 2048x1024x1x1
layer4.0.downsample.1: norm 2048
layer4.1.conv1.weight 512x2048x1x1
layer4.1.bn1: norm 512
layer4.1.conv2.weight 512x512x3x3
layer4.1.bn2: norm 512
layer4.1.conv3.weight 2048x512x1x1
layer4.1.bn3: norm 2048
layer4.2.conv1.weight 512x2048x1x1
layer4.2.bn1: norm 512
layer4.2.conv2.weight 512x512x3x3
layer4.2.bn2: norm 512
layer4.2.conv3.weight 2048x512x1x1
layer4.2.bn3: norm 2048
)";

inline constexpr const char* kScribbleAsppLorm = R"(
layer_pred0.aspp1.atrous_conv.weight 21x2048x1x1
layer_pred0.aspp1.bn: norm 21
layer_pred0.aspp2.atrous_conv.weight 21x2048x3x3
layer_pred0.aspp2.bn: norm 21
layer_pred0.aspp3.atrous_conv.weight 21x2048x3x3
layer_pred0.aspp3.bn: norm 21
layer_pred0.aspp4.atrous_conv.weight 21x2048x3x3
layer_pred0.aspp4.bn: norm 21
layer_pred0.global_avg_pool.1.weight 21x2048x1x1
layer_pred0.global_avg_pool.2: norm 21
layer_pred0.conv1.weight 21x105x1x1
layer_pred0.bn1: norm 21
layer_camatt.gamma 1
layer_camatt.query_conv.weight 2048x2048x1x1
layer_camatt.query_conv.bias 2048
layer_camatt.key_conv.weight 2048x2048x1x1
layer_camatt.key_conv.bias 2048
)";

inline constexpr const char* kScribbleDeeplabv2 = R"(
layer5.aspp1.atrous_conv.weight 21x2048x1x1
layer5.aspp1.bn: norm 21
layer5.aspp2.atrous_conv.weight 21x2048x3x3
layer5.aspp2.bn: norm 21
layer5.aspp3.atrous_conv.weight 21x2048x3x3
layer5.aspp3.bn: norm 21
layer5.aspp4.atrous_conv.weight 21x2048x3x3
layer5.aspp4.bn: norm 21
layer5.global_avg_pool.1.weight 21x2048x1x1
layer5.global_avg_pool.2: norm 21
layer5.conv1.weight 21x105x1x1
layer5.bn1: norm 21
)";

inline constexpr const char* kScribbleDeeplabv3p = R"(
layer_pred0.aspp1.atrous_conv.weight 256x2048x1x1
layer_pred0.aspp1.bn: norm 256
layer_pred0.aspp2.atrous_conv.weight 256x2048x3x3
layer_pred0.aspp2.bn: norm 256
layer_pred0.aspp3.atrous_conv.weight 256x2048x3x3
layer_pred0.aspp3.bn: norm 256
layer_pred0.aspp4.atrous_conv.weight 256x2048x3x3
layer_pred0.aspp4.bn: norm 256
layer_pred0.global_avg_pool.1.weight 256x2048x1x1
layer_pred0.global_avg_pool.2: norm 256
layer_pred0.prject.0.weight 256x1280x1x1
layer_pred0.prject.1: norm 256
reduce.0.weight 48x256x1x1
reduce.1: norm 48
fuse.0.weight 256x304x3x3
fuse.1: norm 256
fuse.3.weight 256x256x3x3
fuse.4: norm 256
classifier.weight 21x256x1x1
classifier.bias 21
)";

inline constexpr const char* kScribbleDeeplabv3pLorm = R"(
layer_pred0.aspp1.atrous_conv.weight 256x2048x1x1
layer_pred0.aspp1.bn: norm 256
layer_pred0.aspp2.atrous_conv.weight 256x2048x3x3
layer_pred0.aspp2.bn: norm 256
layer_pred0.aspp3.atrous_conv.weight 256x2048x3x3
layer_pred0.aspp3.bn: norm 256
layer_pred0.aspp4.atrous_conv.weight 256x2048x3x3
layer_pred0.aspp4.bn: norm 256
layer_pred0.global_avg_pool.1.weight 256x2048x1x1
layer_pred0.global_avg_pool.2: norm 256
layer_pred0.prject.0.weight 256x1280x1x1
layer_pred0.prject.1: norm 256
layer_lorm.gamma 1
layer_lorm.query_conv.weight 2048x2048x1x1
layer_lorm.query_conv.bias 2048
layer_lorm.key_conv.weight 2048x2048x1x1
layer_lorm.key_conv.bias 2048
reduce.0.weight 48x256x1x1
reduce.1: norm 48
fuse.0.weight 256x304x3x3
fuse.1: norm 256
fuse.3.weight 256x256x3x3
fuse.4: norm 256
classifier.weight 21x256x1x1
classifier.bias 21
)";

}  // namespace lockstep::testing
